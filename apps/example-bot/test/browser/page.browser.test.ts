import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import type { Browser, BrowserContext, BrowserContextOptions, Page } from 'playwright-core'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { browserGate, complaints, keepPicture, LOOKS, openBrowser } from './browser-kit.ts'
import { CHANNELS, type PlayedPage, playPage, playTurn } from './page-kit.ts'

const EVIL = '<img src=x onerror="document.title=1"><script>document.title=2</script>\u202e\u2028"\'`{{7*7}}'
const RUNNING = {
  turnId: 'running',
  channel: 'demo:b',
  speaker: { id: 'u-ann', name: 'Ann' },
  driver: 'docker',
  durationMs: 1,
} as const
const TOKEN = 'a-token-of-a-test-that-is-long-enough'

describe.skipIf(!browserGate())('the page in a browser', () => {
  let browser: Browser
  const opened: (PlayedPage['page'] | BrowserContext)[] = []

  beforeAll(async () => {
    browser = await openBrowser()
  })
  afterAll(() => browser?.close())
  afterEach(async () => {
    for (const one of opened.splice(0).reverse()) await one.close()
  })

  async function play(options?: Parameters<typeof playPage>[0]): Promise<PlayedPage> {
    const played = await playPage(options)
    opened.push(played.page)
    return played
  }

  async function visit(
    address: string,
    look: BrowserContextOptions = LOOKS.light,
    clock = false,
  ): Promise<Page> {
    const context = await browser.newContext(look)
    opened.push(context)
    const page = await context.newPage()
    page.setDefaultTimeout(15_000)
    if (clock) await page.clock.install()
    await page.goto(address)
    await live(page)
    return page
  }

  const live = (page: Page) => page.locator('.link', { hasText: 'Live' }).waitFor()
  const goTo = (page: Page, title: string) =>
    page.getByRole('navigation', { name: 'Channels' }).getByRole('button', { name: title }).click()

  test('words that people and workers choose are words, wherever they stand', async () => {
    const speaker = { id: 'u-evil', name: EVIL }
    const channels = [
      { key: 'demo:a', title: EVIL, about: EVIL, speakers: [speaker], ideas: [EVIL] } as const,
    ]
    const { room, ledger, page: served } = await play({ channels })
    const page = await visit(served.address)
    const complained = complaints(page)
    await page.getByRole('button', { name: EVIL }).last().waitFor()
    playTurn(ledger, { speaker, tool: EVIL, ok: false, category: 'worker', cause: EVIL })
    room.post({ channel: 'demo:a', speakerId: speaker.id, text: EVIL })
    const files = [{ name: EVIL, data: new Uint8Array([1, 2, 3]) }]
    room.startTyping('demo:a')
    room.draft('demo:a', EVIL)
    await page.locator('.draft .text', { hasText: EVIL }).waitFor()
    await room.sendReply('demo:a', { chunks: [EVIL], files })
    await page.locator('.entry.reply .text', { hasText: EVIL }).last().waitFor()
    await page.locator('.files button').waitFor()
    for (const summary of await page.locator('summary').all()) await summary.click()
    await page.locator('.call-name', { hasText: EVIL.slice(0, 70) }).waitFor()
    await page.getByLabel('Search turns').fill(EVIL)
    expect(await page.locator('img[src="x"], script:not([src])').count()).toBe(0)
    expect(await page.title()).toBe('Sandbox bot')
    expect(complained).toEqual([])
    await keepPicture(page, 'page-hostile')
  })

  test('a file is saved as it is, under a name that leads nowhere', async () => {
    const { room, page: served } = await play()
    const page = await visit(served.address)
    const data = new TextEncoder().encode('<script>alert(1)</script>')
    await room.sendReply('demo:a', { chunks: ['here'], files: [{ name: '../../évil.html', data }] })
    const [download] = await Promise.all([
      page.waitForEvent('download'),
      page.getByRole('button', { name: 'Save évil.html' }).click(),
    ])
    expect(download.suggestedFilename()).toBe('évil.html')
    expect(readFileSync(await download.path(), 'utf8')).toBe('<script>alert(1)</script>')
  })

  test.each(['light', 'dark', 'phone', 'phone-dark'] as const)(
    'no violation that axe knows, and nothing wider than the window: %s',
    async (look) => {
      const { room, ledger, page: served } = await play({ driver: { kind: 'process', isolation: 'none' } })
      playTurn(ledger, { speaker: { id: 'u-ben', name: 'Ben' } })
      room.post({ channel: 'demo:a', speakerId: 'u-ann', text: 'hello' })
      playTurn(ledger, { ok: false, category: 'credential', cause: 'credential missing', tool: 'bash' })
      const files = [{ name: 'report.csv', data: new Uint8Array(2_000) }]
      await room.sendReply('demo:a', { chunks: [`Wide ${'x'.repeat(300)}`], files })
      room.startTyping('demo:a')
      const page = await visit(served.address, LOOKS[look])
      await page.locator('.draft').waitFor()
      await check(page, `page-${look}`)
      await goTo(page, 'beta')
      await check(page, `page-${look}-empty`)
      if (look.startsWith('phone')) await page.getByRole('button', { name: 'Live view' }).click()
      for (const summary of await page.locator('summary').all()) await summary.click()
      await page.locator('canvas').first().waitFor()
      await check(page, `page-${look}-live`)
    },
  )

  async function check(page: Page, name: string): Promise<void> {
    await keepPicture(page, name)
    expect(await violations(page)).toEqual([])
    expect(await page.evaluate(scrollsSideways)).toEqual([])
  }

  test('by keyboard alone: skip link, speakers, message, channels', async () => {
    const { room, page: served } = await play()
    const page = await visit(served.address)
    await page.keyboard.press('Tab')
    expect(await page.locator(':focus').textContent()).toBe('Skip to the message field')
    await page.keyboard.press('Enter')
    await page.keyboard.type('by hand')
    await page.keyboard.press('Shift+Tab')
    await page.keyboard.press('ArrowRight')
    await page.getByRole('radio', { name: 'Ben', checked: true }).waitFor()
    await page.keyboard.press('Tab')
    await page.keyboard.press('Shift+Enter')
    await page.keyboard.type('two lines')
    await page.keyboard.press('Enter')
    await expect
      .poll(() => room.entries().at(-1))
      .toMatchObject({ speakerId: 'u-ben', text: 'by hand\ntwo lines' })
    await expect.poll(() => page.getByLabel('Message').inputValue()).toBe('')
    await page.getByRole('button', { name: 'beta' }).focus()
    await page.keyboard.press('Enter')
    expect(await page.locator(':focus').getAttribute('aria-current')).toBe('true')
  })

  test('what was typed stays with its channel, and a refusal is told and loses nothing', async () => {
    const { room, page: served } = await play()
    const page = await visit(served.address)
    await page.getByLabel('Message').fill('for alpha')
    await goTo(page, 'beta')
    expect(await page.getByLabel('Message').inputValue()).toBe('')
    await goTo(page, 'alpha')
    expect(await page.getByLabel('Message').inputValue()).toBe('for alpha')
    await room.stop()
    await page.getByRole('button', { name: 'Send' }).click()
    await page.getByRole('alert').getByText('The bot is not running.').waitFor()
    expect(await page.getByLabel('Message').inputValue()).toBe('for alpha')
  })

  test('a long history is drawn in parts, and so are the turns', async () => {
    const { room, ledger, page: served } = await play()
    for (let n = 0; n < 400; n += 1) {
      await room.sendReply('demo:a', { chunks: [`line ${n}`] })
      playTurn(ledger)
    }
    const page = await visit(served.address)
    await page.getByText('line 399').waitFor()
    const chart = await page.locator('canvas').first().elementHandle()
    ledger.onTurn({ ...RUNNING, state: 'admitted' })
    await page.locator('.turns .outcome', { hasText: 'running' }).waitFor()
    expect(await chart?.evaluate((canvas) => canvas.isConnected)).toBe(true)
    ledger.onTurn({ ...RUNNING, state: 'settled', ok: true })
    await expect.poll(() => chart?.evaluate((canvas) => canvas.isConnected)).toBe(false)
    expect(await page.locator('.entry').count()).toBe(60)
    expect(await page.locator('.turns li').count()).toBe(25)
    await page.locator('.turns .turn').last().click()
    expect(await page.locator(':focus').textContent()).toBe('Picked turn')
    await page.getByRole('button', { name: 'Back to the latest' }).click()
    await page.getByRole('heading', { name: 'Latest turn' }).waitFor()
    await page.getByRole('button', { name: 'Show 60 older messages' }).click()
    await page.getByText('line 300', { exact: true }).waitFor()
    expect(await page.locator('.entry').count()).toBe(120)
    for (let n = 0; n < 50; n += 1) await room.sendReply('demo:a', { chunks: [`more ${n}`] })
    await page.getByText('more 49').waitFor()
    expect(await page.locator('.entry').count()).toBe(120)
  })

  test('two tabs see the same, and each has its own channel and draft', async () => {
    const { page: served } = await play()
    const [one, two] = [await visit(served.address), await visit(served.address)]
    await goTo(two, 'beta')
    await two.getByLabel('Message').fill('mine')
    await one.getByLabel('Message').fill('hello both')
    await one.keyboard.press('Enter')
    await one.locator('.entry', { hasText: 'hello both' }).waitFor()
    await two.getByRole('button', { name: 'alpha , new messages' }).waitFor()
    expect(await two.getByLabel('Message').inputValue()).toBe('mine')
    await goTo(two, 'alpha')
    await two.locator('.entry', { hasText: 'hello both' }).waitFor()
  })

  test('a bot that starts again: the page comes back by itself; with another token it says so', async () => {
    const first = await play({ token: TOKEN })
    const page = await visit(first.page.address)
    await first.room.sendReply('demo:a', { chunks: ['before'] })
    await page.getByText('before').waitFor()
    await first.page.close()
    await page.locator('.link', { hasText: 'Reconnecting' }).waitFor()
    const { port } = first.page
    const second = await play({ token: TOKEN, port, channels: CHANNELS.slice(1) })
    await second.room.sendReply('demo:b', { chunks: ['after'] })
    await page.getByText('after').waitFor()
    expect(await page.getByText('before').count()).toBe(0)
    await second.page.close()
    const third = await play({ port })
    await page.locator('.link', { hasText: 'Refused' }).waitFor()
    await page.getByRole('alert').getByText('Open the address that the bot printed').waitFor()
    await page.evaluate((address) => location.assign(address), third.page.address)
    await live(page)
    expect(new URL(page.url()).hash).toBe('')
  })

  test('a line that fell silent, as after a sleep, is opened anew; a page that nobody sees gives its line up', async () => {
    const { room, page: served } = await play({ beatMs: 2_000_000_000 })
    const page = await visit(served.address, LOOKS.light, true)
    let lines = 0
    page.on('request', (request) => {
      if (request.url().endsWith('/api/events')) lines += 1
    })
    await page.clock.runFor(31_000)
    await expect.poll(() => lines).toBe(1)
    await expect.poll(() => room.listening).toBe(1)
    await page.evaluate(() => {
      Object.defineProperty(document, 'visibilityState', { value: 'hidden', configurable: true })
      document.dispatchEvent(new Event('visibilitychange'))
    })
    await page.clock.runFor(60_000)
    await expect.poll(() => room.listening).toBe(0)
    expect(lines).toBe(1)
    await room.sendReply('demo:a', { chunks: ['meanwhile'] })
    await page.evaluate(() => {
      Object.defineProperty(document, 'visibilityState', { value: 'visible', configurable: true })
      document.dispatchEvent(new Event('visibilitychange'))
    })
    await page.getByText('meanwhile').waitFor()
  })

  test('without the token the page is empty and says what to do', async () => {
    const { page: served } = await play()
    const context = await browser.newContext(LOOKS.light)
    opened.push(context)
    const page = await context.newPage()
    await page.goto(new URL(served.address).origin)
    await page.getByRole('alert').getByText('Open the address that the bot printed').waitFor()
    expect(await page.locator('.channels li').count()).toBe(0)
  })

  test('who asked for less motion gets none', async () => {
    const { room, page: served } = await play()
    room.startTyping('demo:a')
    const moving = async (reducedMotion: 'reduce' | 'no-preference') => {
      const page = await visit(served.address, { ...LOOKS.light, reducedMotion })
      await page.locator('.dots i').first().waitFor()
      return page.evaluate(() => document.getAnimations().length)
    }
    expect(await moving('no-preference')).toBeGreaterThan(0)
    expect(await moving('reduce')).toBe(0)
  })
})

/** What is wider than its place, but for what is meant to scroll sideways. Runs in the page. */
function scrollsSideways(): string[] {
  const meant = '.scroll-x, .channels, textarea'
  return [document.documentElement, ...document.querySelectorAll('body, body *')]
    .filter((one) => one.scrollWidth > one.clientWidth && !one.matches(meant))
    .filter((one) => {
      const { clipPath, overflowX, textOverflow } = getComputedStyle(one)
      return clipPath === 'none' && overflowX !== 'visible' && textOverflow !== 'ellipsis'
    })
    .map((one) => `${one.localName}.${one.className}`)
}

const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')

/** What axe finds wrong with the page as it is: a line a finding. */
async function violations(page: Page): Promise<string[]> {
  await page.evaluate(axe)
  return page.evaluate(async () => {
    const { axe } = globalThis as unknown as { axe: typeof import('axe-core') }
    const { violations } = await axe.run()
    return violations.flatMap(({ id, help, nodes }) => nodes.map(({ target }) => `${id}: ${help}: ${target}`))
  })
}
