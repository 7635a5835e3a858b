import { CallRefusal } from '@sandbox/broker/engine'

const BEYOND = /^is beyond the (\d+) entries/
/** A problem of a part, found when the whole around it ended, begins with the way to it. */
const PART = /^content\.\d+: /

/**
 * The refusal of a request, in words that clients of the API know (PB-22): places as the API writes them, and a
 * conversation of too many parts as a prompt that is too long, so that a client compacts it (W-39).
 */
export function inputRefusal({ problem, path }: { readonly problem: string; readonly path: string }) {
  const place = path.replace(/\[(\d+)\]/g, '.$1')
  const separator = PART.test(problem) ? '.' : ': '
  const found = place === '' ? problem : `${place}${separator}${problem}`
  const most = place.startsWith('messages') ? BEYOND.exec(problem)?.[1] : undefined
  const wording =
    most === undefined ? found : `prompt is too long: ${place} is beyond the ${most} that are taken`
  return new CallRefusal('input_refused', { wording, problem: wording })
}

/** A tag in a refusal. It is the guest's: short and printable. */
export function unexpectedTag(tag: unknown, expected: readonly string[]): string {
  return (
    `Input tag '${shown(tag)}' found using 'type' does not match any of the expected tags: ` +
    expected.map((one) => `'${one}'`).join(', ')
  )
}

/** A role in a refusal. */
export function unexpectedRole(role: unknown): string {
  return `Unexpected role "${shown(role)}". Taken as an input message role are user, assistant and system.`
}

function shown(text: unknown): string {
  return typeof text === 'string' ? text.slice(0, 64).replace(/[^\w.-]/g, '?') : ''
}
