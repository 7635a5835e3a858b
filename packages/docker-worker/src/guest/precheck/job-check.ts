import { PROTOCOL_VERSION, type PrecheckJob } from '@sandbox/protocol'
import { isObject } from '../shared/json.ts'
import { readTurnId } from '../shared/turn-id.ts'

/**
 * The job, when `value` has the shape of one that this program understands, else `undefined`. The host has checked every
 * length already; this is the check of structure, without a schema library in the bundle.
 */
export function readJob(value: unknown): PrecheckJob | undefined {
  if (!isObject(value) || value.protocol !== PROTOCOL_VERSION) return undefined
  const { schedule, servers, remainingMs } = value
  const texts = [value.script, value.firedAt, value.timeZone, value.today]
  const valid =
    readTurnId(value) !== undefined &&
    texts.every((text) => typeof text === 'string') &&
    Number.isInteger(remainingMs) &&
    isObject(schedule) &&
    typeof schedule.id === 'string' &&
    typeof schedule.title === 'string' &&
    Array.isArray(servers) &&
    servers.every(isServer)
  return valid ? (value as PrecheckJob) : undefined
}

function isServer(value: unknown): boolean {
  return (
    isObject(value) &&
    typeof value.server === 'string' &&
    Array.isArray(value.tools) &&
    value.tools.every((tool) => typeof tool === 'string')
  )
}
