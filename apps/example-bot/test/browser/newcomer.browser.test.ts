import { copyFileSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { dockerSocket } from '@sandbox/testing'
import type { Browser, Locator, Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { freshStateDir, type RunningDemo, runDemo } from '../run-demo.ts'
import { browserGate, complaints, keepPicture, LOOKS, openBrowser } from './browser-kit.ts'

const engine = dockerSocket()

/** What a newcomer does, one step after the other, on the demo of the README: on an engine when there is one. */
describe.skipIf(!browserGate())('a newcomer on the page', () => {
  let demo: RunningDemo
  let browser: Browser
  let page: Page
  let complained: string[]

  beforeAll(async () => {
    const stateDir = freshStateDir()
    mkdirSync(stateDir, { mode: 0o700 })
    const prices = { models: { demo: { input: 2.5, output: 10 } } }
    writeFileSync(join(stateDir, 'prices.json'), JSON.stringify(prices))
    demo = runDemo(['--driver', engine === undefined ? 'process' : 'docker', '--state', stateDir], {
      stateDir,
      env: engine === undefined ? {} : { SANDBOX_DOCKER_SOCKET: engine },
    })
    const [address, started] = await Promise.all([demo.address, openBrowser()])
    browser = started
    page = await browser.newPage({ ...LOOKS.light, acceptDownloads: true })
    complained = complaints(page)
    page.setDefaultTimeout(20_000)
    await page.goto(address)
  })

  afterAll(async () => {
    await browser?.close()
    await demo?.[Symbol.asyncDispose]()
  })

  const log = () => page.getByRole('log')
  const payer = () => page.locator('.payer')
  const goTo = (channel: string) =>
    page.getByRole('navigation', { name: 'Channels' }).getByRole('button', { name: channel }).click()
  const stage = (name: string) => page.getByRole('listitem').filter({ hasText: new RegExp(`^${name} `) })

  /** Says it, and waits for the reply. */
  async function say(text: string): Promise<Locator> {
    const replies = log().locator('.entry.reply:not(.draft)')
    const before = await replies.count()
    await page.getByLabel('Message').fill(text)
    await page.keyboard.press('Enter')
    const reply = replies.nth(before)
    await reply
      .locator('.receipt')
      .getByText(/^\d+(\.\d+)? m?s$/)
      .waitFor()
    return reply
  }

  /** The key that paid for a reply, as the page shows it. */
  const keyOf = (reply: Locator) => reply.locator('.key').textContent()

  test('the page is live, and its address no longer holds the token', async () => {
    await page.getByRole('status').filter({ hasText: 'Live' }).waitFor()
    expect(new URL(page.url()).hash).toBe('')
    expect(await page.getByRole('alert').filter({ hasText: 'no sandbox' }).count()).toBe(engine ? 0 : 1)
    await keepPicture(page, 'newcomer-1-empty')
  })

  test('an idea is said by a press, and the answer says who paid', async () => {
    await page.getByRole('button', { name: 'hello', exact: true }).click()
    const reply = log().locator('.entry.reply:not(.draft)')
    await reply.getByText('Hello Cleo!').waitFor()
    await reply.getByText('Paid by channel demo:alpha').waitFor()
    expect(await keyOf(reply)).toBe(await payer().locator('.key').textContent())
  })

  test('the road of the turn is told, with the walls that the worker proved', async () => {
    for (const name of ['Claim', 'Worker', 'Broker', 'Key', 'Provider', 'Answer']) {
      await stage(name).filter({ hasText: 'passed' }).waitFor()
    }
    const walls = page.locator('.walls .badge')
    expect(await walls.textContent()).toMatch(engine === undefined ? /^\d of 8$/ : /^8 of 8$/)
  })

  test('another speaker of the same channel pays with another key', async () => {
    await goTo('team')
    const ann = await keyOf(await say('remember that I like tea'))
    await page.getByRole('radio', { name: 'Ben' }).check()
    await payer().getByText('speaker u-ben').waitFor()
    const reply = await say('what do you remember?')
    await reply.getByText('Paid by channel demo:team, speaker u-ben').waitFor()
    expect(await keyOf(reply)).not.toBe(ann)
    await keepPicture(page, 'newcomer-2-team')
  })

  test('a channel without a key: refused, and the provider saw nothing', async () => {
    await goTo('nokey')
    await payer().getByText('Nobody pays here').waitFor()
    const reply = await say('hello')
    await reply.getByText('Nobody paid').waitFor()
    await stage('Key').filter({ hasText: 'refused' }).getByText('no key').waitFor()
    await stage('Provider').getByText('saw nothing').waitFor()
    await keepPicture(page, 'newcomer-3-nokey')
  })

  test('a changed key file: the page shows it by itself, and the next turn is paid by the other key', async () => {
    await goTo('beta')
    const beta = await payer().locator('.key').textContent()
    await goTo('alpha')
    const before = await payer().locator('.key').textContent()
    expect(before).not.toBe(beta)
    const keys = join(demo.stateDir, 'keys')
    copyFileSync(join(keys, 'beta.key'), join(keys, 'alpha.key'))
    await payer()
      .locator('.key', { hasText: beta ?? '' })
      .waitFor()
    expect(await keyOf(await say('hello again'))).toBe(beta)
  })

  test('a turn is stopped', async () => {
    await page.getByLabel('Message').fill('take your time')
    await page.keyboard.press('Enter')
    await stage('Provider').filter({ hasText: 'at work' }).waitFor()
    await keepPicture(page, 'newcomer-4-running')
    await page.getByRole('button', { name: 'Stop', exact: true }).click()
    await page.locator('.turns .outcome', { hasText: 'stopped' }).waitFor()
    await page.locator('#message:focus').waitFor()
    await page.getByRole('button', { name: 'Stop', exact: true }).waitFor({ state: 'detached' })
  })

  test('the sandbox of a channel is turned off and on', async () => {
    await goTo('beta')
    const toggle = page.getByRole('switch', { name: 'Sandbox' })
    await toggle.click()
    await page.getByText('The sandbox is off in this channel').waitFor()
    await toggle.click()
    await page.getByText('Nothing has been said here yet').waitFor()
  })

  test('search, filter and export: what is shown is what is saved, and no key is in it', async () => {
    await page.getByLabel('Outcome').selectOption('refused')
    const csv = await exported('CSV')
    expect(csv.name).toMatch(/^turns-.*\.csv$/)
    expect(csv.text.split('\r\n').slice(1, -1)).toEqual([expect.stringContaining('"credential_missing x1"')])
    await page.getByLabel('Outcome').selectOption('')
    await page.getByLabel('Search turns').fill('u-ben')
    const json = JSON.parse((await exported('JSON')).text)
    expect(json.turns).toMatchObject([{ speaker: { name: 'Ben' }, ok: true, modelCalls: expect.any(Number) }])
    await page.getByLabel('Search turns').fill('')
    const all = (await exported('JSON')).text + (await exported('CSV')).text + (await page.content())
    const keys = join(demo.stateDir, 'keys')
    for (const name of readdirSync(keys).filter((one) => one.endsWith('.key'))) {
      expect(all).not.toContain(readFileSync(join(keys, name), 'utf8').trim())
    }
  })

  test('nothing was complained about on the way', async () => {
    await goTo('team')
    await keepPicture(page, 'newcomer-5-end')
    const { SANDBOX_PAGE_PICTURE: path } = process.env
    if (path) {
      await page.setViewportSize({ width: 1280, height: 740 })
      await page.locator('.live').evaluate((live) => live.scrollTo(0, 0))
      await page.screenshot({ path })
    }
    expect(complained).toEqual([])
  })

  async function exported(format: 'CSV' | 'JSON'): Promise<{ name: string; text: string }> {
    const [download] = await Promise.all([
      page.waitForEvent('download'),
      page.getByRole('button', { name: format }).click(),
    ])
    return { name: download.suggestedFilename(), text: readFileSync(await download.path(), 'utf8') }
  }
})
