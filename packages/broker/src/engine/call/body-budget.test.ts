import { describe, expect, test } from 'vitest'
import { BodyBudget, type BodyLease, type BodyShare, sharedBodyBudget } from './body-budget.ts'
import { CallRefusal } from './refusal.ts'

const MIB = 1024 * 1024
const never = new AbortController().signal

/** 64 MiB: 8 for small bodies, 56 for large ones; a body counts twice. */
const budgetOf = (bytes = 64 * MIB) => new BodyBudget({ bytes })

/** Reservations as they are granted. */
function line() {
  const granted: string[] = []
  const leases = new Map<string, BodyLease>()
  return {
    granted,
    ask: (name: string, share: BodyShare, bytes: number, signal = never) =>
      share.reserve(bytes, signal).then((lease) => {
        granted.push(name)
        leases.set(name, lease)
      }),
    release: (name: string) => leases.get(name)?.release(),
    settled: () => new Promise((done) => setImmediate(done)),
  }
}

describe('W-31 memory for bodies', () => {
  test('bodies wait for room, in the order in which they came', async () => {
    const budget = budgetOf()
    const { granted, ask, release, settled } = line()
    for (const name of ['a', 'b', 'c', 'd', 'e']) void ask(name, budget.share(), 14 * MIB)
    void ask('tiny', budget.share(), MIB)
    await settled()
    expect(granted).toEqual(['a', 'b'])
    expect(budget).toMatchObject({ heldBytes: 56 * MIB, waiting: 4 })
    release('b')
    await settled()
    expect(granted).toEqual(['a', 'b', 'c'])
    for (const name of ['a', 'c', 'd', 'e', 'tiny']) {
      release(name)
      await settled()
    }
    expect(granted).toEqual(['a', 'b', 'c', 'd', 'e', 'tiny'])
    expect(budget).toMatchObject({ heldBytes: 0, waiting: 0 })
  })

  test('a small body does not wait for large ones, and large ones leave room for it', async () => {
    const budget = budgetOf()
    const { granted, ask, settled } = line()
    for (const name of ['a', 'b', 'c']) void ask(name, budget.share(), 28 * MIB)
    void ask('small', budget.share(), 512 * 1024)
    await settled()
    expect(granted).toEqual(['a', 'small'])
  })

  test('one broker cannot hold more than a quarter with several bodies, and holds up nobody', async () => {
    const budget = budgetOf()
    const greedy = budget.share()
    const { granted, ask, release, settled } = line()
    for (const name of ['g1', 'g2', 'g3', 'g4']) void ask(name, greedy, 6 * MIB)
    void ask('other', budget.share(), 6 * MIB)
    await settled()
    expect(granted).toEqual(['g1', 'other'])
    release('g1')
    await settled()
    expect(granted).toEqual(['g1', 'other', 'g2'])
  })

  test('a single body may be as large as there is room', async () => {
    const budget = budgetOf()
    const lease = await budget.share().reserve(28 * MIB, never)
    expect(budget.heldBytes).toBe(56 * MIB)
    lease.release()
    lease.release()
    expect(budget.heldBytes).toBe(0)
  })

  test('a body that could never fit is refused at once, and says what fits', async () => {
    const budget = budgetOf()
    void budget.share().reserve(28 * MIB, never)
    const refused = budget.share().reserve(28 * MIB + 1, never)
    await expect(refused).rejects.toMatchObject({ reason: 'body_too_large', limitBytes: 28 * MIB })
    expect(budget.waiting).toBe(0)
  })

  test('a call that ends while it waits holds nothing, and those behind it go on', async () => {
    const budget = budgetOf()
    const { granted, ask, settled } = line()
    const control = new AbortController()
    void ask('a', budget.share(), 20 * MIB)
    const left = ask('b', budget.share(), 28 * MIB, control.signal)
    void ask('c', budget.share(), 8 * MIB)
    await settled()
    expect(granted).toEqual(['a'])
    control.abort(new CallRefusal('turn_over'))
    await expect(left).rejects.toMatchObject({ reason: 'turn_over' })
    await settled()
    expect(granted).toEqual(['a', 'c'])
    expect(budget.waiting).toBe(0)
    await expect(budget.share().reserve(1, control.signal)).rejects.toMatchObject({ reason: 'turn_over' })
  })

  test('a signal that fires after the grant takes nothing back twice', async () => {
    const budget = budgetOf()
    const control = new AbortController()
    const lease = await budget.share().reserve(MIB, control.signal)
    control.abort()
    expect(budget.heldBytes).toBe(2 * MIB)
    lease.release()
    expect(budget.heldBytes).toBe(0)
  })

  test('what was reserved too much is given back when the size is known', async () => {
    const budget = budgetOf()
    const { granted, ask, settled } = line()
    const lease = await budget.share().reserve(28 * MIB, never)
    void ask('a', budget.share(), 20 * MIB)
    lease.shrink(8 * MIB)
    await settled()
    expect(granted).toEqual(['a'])
    expect(budget.heldBytes).toBe(56 * MIB)
    lease.shrink(30 * MIB)
    lease.release()
    expect(budget.heldBytes).toBe(40 * MIB)
  })

  test('one budget for the process, unless a host makes its own', () => {
    expect(sharedBodyBudget()).toBe(sharedBodyBudget())
    for (const bytes of [0, 1.5, MIB, Number.NaN]) expect(() => budgetOf(bytes)).toThrow('16 MiB')
  })
})
