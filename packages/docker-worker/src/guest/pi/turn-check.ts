import { isPiThinkingLevel, isSafeFileName, type PiTurn, PROTOCOL_VERSION } from '@sandbox/protocol'
import { isHeaderSafe } from '../shared/header-text.ts'
import { isObject } from '../shared/json.ts'
import { readTurnId } from '../shared/turn-id.ts'

/**
 * The turn, when `value` has the shape of one that this worker understands, else `undefined`. The host has checked
 * every length already; this is the check of structure, without a schema library in the bundle. It accepts whatever
 * the protocol's own check accepts.
 */
export function readPiTurn(value: unknown): PiTurn | undefined {
  if (!isObject(value) || value.protocol !== PROTOCOL_VERSION) return undefined
  const { speaker, prompt, memory, remainingMs } = value
  const texts = [value.text, value.model, value.timeZone, value.profile]
  const valid =
    readTurnId(value) !== undefined &&
    isSafeFileName(value.turnId) &&
    texts.every((text) => typeof text === 'string') &&
    isHeaderSafe(value.nonce) &&
    Number.isInteger(remainingMs) &&
    isPiThinkingLevel(value.thinking) &&
    [prompt, memory].every((text) => text === undefined || typeof text === 'string') &&
    isObject(speaker) &&
    typeof speaker.id === 'string' &&
    typeof speaker.name === 'string' &&
    isListOf(value.attachments, (one) => isObject(one) && isSafeFileName(one.name)) &&
    isListOf(value.images, (one) => hasTexts(one, 'mimeType', 'data')) &&
    isListOf(value.mcp, (server) => hasTexts(server, 'name') && isListOf(server.tools, isToolSpec))
  return valid ? (value as PiTurn) : undefined
}

/** True for a tool as a host describes it. */
export function isToolSpec(value: unknown): boolean {
  return hasTexts(value, 'name', 'description') && isObject(value.parameters)
}

/** True for an object in which each of these fields is a text. */
export function hasTexts(value: unknown, ...names: readonly string[]): value is Record<string, unknown> {
  return isObject(value) && names.every((name) => typeof value[name] === 'string')
}

/** True for a list of nothing else. */
export function isListOf(value: unknown, check: (item: unknown) => boolean): boolean {
  return Array.isArray(value) && value.every(check)
}
