import type { Receipt } from '../wire.ts'
import { categoryWords, count, duration, reasonWords } from './words.ts'

/** One place that a turn passes, from the channel to the provider and back. */
export interface Stage {
  readonly id: 'claim' | 'worker' | 'broker' | 'key' | 'provider' | 'answer'
  readonly title: string
  /** `todo`: not there yet, or never. */
  readonly state: 'todo' | 'now' | 'done' | 'refused'
  readonly detail: string
  /** A key's fingerprint to show beside the detail. */
  readonly fingerprint?: string
  /** When it was passed, in milliseconds since the turn was admitted. */
  readonly afterMs?: number
}

/** A turn's road through the host, as far as the host told. */
export function roadOf(receipt: Receipt): readonly Stage[] {
  const { channel, speaker } = receipt
  return [
    { id: 'claim', title: 'Claim', state: 'done', detail: `${channel} for ${speaker.name}`, afterMs: 0 },
    worker(receipt),
    broker(receipt),
    key(receipt),
    provider(receipt),
    answer(receipt),
  ]
}

/** True until the last state. */
export function running({ state }: Receipt): boolean {
  return state !== 'settled'
}

function worker(receipt: Receipt): Stage {
  const base = { id: 'worker', title: 'Worker' } as const
  const { workerId, warm, driver } = receipt
  if (workerId === undefined) {
    if (isOver(receipt)) return { ...base, state: 'refused', detail: categoryWords(receipt.category) }
    return { ...base, state: 'now', detail: driver === 'docker' ? 'container starts' : 'process starts' }
  }
  const place = driver === 'docker' ? 'container' : 'plain process, no sandbox:'
  const now = isOver(receipt) ? '' : ', running'
  return {
    ...base,
    state: 'done',
    detail: `${place} ${workerId.slice(0, 8)}, ${warm ? 'was waiting' : 'fresh'}${now}`,
    ...after(receipt, 'bound'),
  }
}

function broker(receipt: Receipt): Stage {
  const base = { id: 'broker', title: 'Broker' } as const
  if (receipt.workerId === undefined) return { ...base, state: 'todo', detail: '' }
  const own = refusals(receipt, (reason) => !isKeys(reason) && !isProviders(reason))
  const calls = receipt.modelCalls + receipt.toolCalls.length
  const detail = own === '' ? count(calls, 'call') : `${count(calls, 'call')}; refused: ${own}`
  if (calls === 0 && !isOver(receipt)) {
    return { ...base, state: receipt.key === undefined ? 'now' : 'done', detail: 'bound to the speaker' }
  }
  return { ...base, state: own !== '' && receipt.ok !== true ? 'refused' : 'done', detail }
}

function key(receipt: Receipt): Stage {
  const base = { id: 'key', title: 'Key' } as const
  const refused = refusals(receipt, isKeys)
  if (refused !== '') return { ...base, state: 'refused', detail: refused }
  const paid = receipt.payments.at(-1) ?? (receipt.key?.outcome === 'ok' ? receipt.key : undefined)
  if (paid === undefined)
    return { ...base, state: 'todo', detail: isOver(receipt) ? 'was not asked for' : '' }
  return {
    ...base,
    state: 'done',
    detail: [paid.rule ?? 'chosen', paid.source].filter(Boolean).join(' · '),
    ...(paid.fingerprint === undefined ? {} : { fingerprint: paid.fingerprint }),
  }
}

function provider(receipt: Receipt): Stage {
  const base = { id: 'provider', title: 'Provider' } as const
  const refused = refusals(receipt, isProviders)
  const last = receipt.calls.findLast(
    ({ route, upstreamStatus }) => route === 'model' && upstreamStatus !== undefined,
  )
  if (refused !== '') return { ...base, state: 'refused', detail: refused }
  if (last !== undefined) {
    const detail = [last.model, last.upstreamStatus, duration(last.durationMs)].filter(Boolean).join(' · ')
    return { ...base, state: 'done', detail }
  }
  if (isOver(receipt)) return { ...base, state: 'todo', detail: 'saw nothing' }
  return receipt.key?.outcome === 'ok'
    ? { ...base, state: 'now', detail: 'answers' }
    : { ...base, state: 'todo', detail: '' }
}

function answer(receipt: Receipt): Stage {
  const base = { id: 'answer', title: 'Answer' } as const
  if (receipt.state === 'settled') {
    const detail = receipt.ok === true ? 'posted' : categoryWords(receipt.category)
    return { ...base, state: receipt.ok === true ? 'done' : 'refused', detail, afterMs: receipt.durationMs }
  }
  return receipt.state === 'settling'
    ? { ...base, state: 'now', detail: 'the worker is removed' }
    : { ...base, state: 'todo', detail: '' }
}

function isOver({ state }: Receipt): boolean {
  return state === 'settling' || state === 'settled'
}

function after({ steps }: Receipt, state: Receipt['state']): { afterMs?: number } {
  const found = steps.find((step) => step.state === state)
  return found === undefined ? {} : { afterMs: found.afterMs }
}

function refusals({ refusals }: Receipt, which: (reason: string) => boolean): string {
  return Object.entries(refusals)
    .filter(([reason]) => which(reason))
    .map(([reason, times = 1]) => `${reasonWords(reason)}${times > 1 ? ` × ${times}` : ''}`)
    .join(', ')
}

function isKeys(reason: string): boolean {
  return /^credential_(missing|error|invalid)$|^credit_/.test(reason)
}

function isProviders(reason: string): boolean {
  return reason.startsWith('upstream_') || reason === 'reflection'
}
