import { expect, test } from 'vitest'
import { StartGate, type StartTicket } from './start-gate.ts'

const tick = () => new Promise<void>((done) => setImmediate(done))

/** A gate that writes down who entered. */
function gateOf(limit: number) {
  const gate = new StartGate(limit)
  const order: string[] = []
  const enter = (name: string, urgent = true, signal?: AbortSignal): StartTicket => {
    const ticket = gate.enter(name.split('-')[0] ?? name, { urgent, ...(signal && { signal }) })
    ticket.entered.then(
      () => order.push(name),
      () => {},
    )
    return ticket
  }
  return { order, enter }
}

test('no more starts at once than the limit', async () => {
  const { order, enter } = gateOf(2)
  const [first] = [enter('a'), enter('b'), enter('c')]
  await tick()
  expect(order).toEqual(['a', 'b'])
  first?.leave()
  first?.leave()
  await tick()
  expect(order).toEqual(['a', 'b', 'c'])
})

test('a channel that asks often waits behind one that asks once', async () => {
  const { order, enter } = gateOf(1)
  const tickets = [enter('a-1'), enter('a-2'), enter('a-3'), enter('b-1')]
  for (let round = 0; round < 4; round += 1) {
    await tick()
    tickets
      .find((_, index) => ['a-1', 'b-1', 'a-2', 'a-3'][round] === ['a-1', 'a-2', 'a-3', 'b-1'][index])
      ?.leave()
  }
  expect(order).toEqual(['a-1', 'b-1', 'a-2', 'a-3'])
})

test('a turn goes before spares, and spares leave the last place free', async () => {
  const { order, enter } = gateOf(2)
  enter('spare-1', false)
  enter('spare-2', false)
  await tick()
  expect(order).toEqual(['spare-1'])
  const turn = enter('turn-1')
  const second = enter('turn-2')
  await tick()
  expect(order).toEqual(['spare-1', 'turn-1'])
  turn.leave()
  await tick()
  expect(order).toEqual(['spare-1', 'turn-1', 'turn-2'])
  second.leave()
})

test('a spare that a turn waits for becomes a turn', async () => {
  const { order, enter } = gateOf(1)
  const first = enter('a')
  enter('b', false)
  const wanted = enter('c', false)
  wanted.promote()
  first.leave()
  await tick()
  expect(order).toEqual(['a', 'c'])
})

test('one that is called off lets the next in', async () => {
  const { order, enter } = gateOf(1)
  const stop = new AbortController()
  const first = enter('a')
  const called = enter('b', true, stop.signal)
  enter('c')
  stop.abort()
  await expect(called.entered).rejects.toMatchObject({ code: 'aborted' })
  first.leave()
  await tick()
  expect(order).toEqual(['a', 'c'])
  await expect(enter('d', true, AbortSignal.abort()).entered).rejects.toMatchObject({ code: 'aborted' })
})
