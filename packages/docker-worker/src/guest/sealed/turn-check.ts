import { PROTOCOL_VERSION, ROUTE_NAME, type SealedTurn } from '@sandbox/protocol'
import { isHeaderSafe } from '../shared/header-text.ts'
import { isObject } from '../shared/json.ts'
import { readTurnId } from '../shared/turn-id.ts'

/**
 * The turn, when `value` has the shape of one that this worker understands, else `undefined`. The host has
 * checked every length already; this is the check of structure, without a schema library in the bundle. It
 * accepts whatever the protocol's own check accepts.
 */
export function readTurn(value: unknown): SealedTurn | undefined {
  if (!isObject(value) || value.protocol !== PROTOCOL_VERSION) return undefined
  const { speaker, prompt, remainingMs } = value
  const texts = [value.nonce, value.text, value.model, value.timeZone]
  const valid =
    readTurnId(value) !== undefined &&
    texts.every((text) => typeof text === 'string') &&
    isHeaderSafe(value.nonce) &&
    Number.isInteger(remainingMs) &&
    typeof value.reset === 'boolean' &&
    (prompt === undefined || typeof prompt === 'string') &&
    isObject(speaker) &&
    typeof speaker.id === 'string' &&
    typeof speaker.name === 'string' &&
    isListOf(value.tools, isToolSpec) &&
    isListOf(value.mcp, isMcpSpec)
  return valid ? (value as SealedTurn) : undefined
}

function isToolSpec(value: unknown): boolean {
  return (
    isObject(value) &&
    isRouteName(value.name) &&
    typeof value.description === 'string' &&
    isObject(value.parameters)
  )
}

function isMcpSpec(value: unknown): boolean {
  return isObject(value) && isRouteName(value.name) && isListOf(value.tools, isToolSpec)
}

function isRouteName(value: unknown): boolean {
  return typeof value === 'string' && ROUTE_NAME.test(value)
}

function isListOf(value: unknown, check: (item: unknown) => boolean): boolean {
  return Array.isArray(value) && value.every(check)
}
