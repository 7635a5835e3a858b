import { expect, test } from 'vitest'
import { WorkspaceUse } from './workspace-use.ts'

const NEVER = new AbortController().signal
const tick = () => new Promise<void>((done) => setImmediate(done))

test('housekeeping waits for the users that are there, hurries them, and those who come later wait for it', async () => {
  const use = new WorkspaceUse()
  const seen: string[] = []
  const leave = [await use.enter('d', NEVER), await use.enter('d', NEVER)]
  const finish = Promise.withResolvers<void>()
  const chore = use.alone(
    'd',
    async () => {
      seen.push('chore')
      await finish.promise
      return 7
    },
    () => void seen.push('hurry'),
  )
  const late = use.enter('d', NEVER).then((done) => {
    seen.push('late')
    return done
  })
  await use.enter('other', NEVER)
  leave[0]?.()
  await tick()
  expect(seen).toEqual(['hurry'])
  leave[1]?.()
  await tick()
  expect(seen).toEqual(['hurry', 'chore'])
  finish.resolve()
  expect(await chore).toBe(7)
  ;(await late)()
  expect(seen).toEqual(['hurry', 'chore', 'late'])
})

test('one that fails keeps nobody waiting, and one after the other is done', async () => {
  const use = new WorkspaceUse()
  const seen: number[] = []
  const failing = use.alone('d', () => Promise.reject(new TypeError('no')))
  const second = use.alone('d', async () => void seen.push(2))
  await expect(failing).rejects.toThrow('no')
  await second
  await use.idle()
  ;(await use.enter('d', NEVER))()
  expect(seen).toEqual([2])
})

test('who is called off while waiting is no user', async () => {
  const use = new WorkspaceUse()
  const finish = Promise.withResolvers<void>()
  const chore = use.alone('d', () => finish.promise)
  const called = new AbortController()
  const entering = use.enter('d', called.signal)
  called.abort(new TypeError('off'))
  await expect(entering).rejects.toThrow('off')
  finish.resolve()
  await chore
  await use.alone('d', async () => {})
})
