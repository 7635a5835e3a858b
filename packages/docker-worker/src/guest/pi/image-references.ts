import { limits, type PiImage, type PiToolSpec } from '@sandbox/protocol'
import { GuestError } from '../shared/errors.ts'
import { isObject, type JsonObject } from '../shared/json.ts'
import { readAttachment } from './attachments.ts'

/** The tool of a host whose `references` are pictures that were attached to messages. */
const IMAGE_TOOL = 'image_generate'
const FIELD = 'references'
const MOST = 4
const ENDING = /\.(?:png|jpe?g|webp|gif)$/i
/** The other fields of a call, and what JSON adds to the pictures. */
const ROOM_BYTES = 256 * 1024

/** A picture as the host's tool gets it. */
type Reference = PiImage & { readonly name: string }

/** True when a host's tool takes pictures: for the model they are names, for the host what they stand for (WP-10). */
export function takesReferences({ name, parameters }: PiToolSpec): boolean {
  return name === IMAGE_TOOL && isObject(parameters.properties) && FIELD in parameters.properties
}

/** What the model is told of such a tool: names of attachments in place of pictures. */
export function namesForReferences(parameters: JsonObject): JsonObject {
  const items = { type: 'string', maxLength: limits.FILE_NAME_CHARS }
  const description = `Names of attached images to go by, ${MOST} at most`
  const properties = {
    ...(parameters.properties as JsonObject),
    [FIELD]: { type: 'array', items, maxItems: MOST, description },
  }
  return { ...parameters, properties }
}

/** The input for the host: each name replaced by its picture. Throws a {@link GuestError} `tool_refused`. */
export function withReferences(workspace: string, input: JsonObject): JsonObject {
  const names = input[FIELD]
  if (names === undefined) return input
  if (!Array.isArray(names) || names.length > MOST) {
    throw new GuestError('tool_refused', `There may be ${MOST} references at most, by name.`)
  }
  let left = limits.PI_CALL_BODY_BYTES - ROOM_BYTES
  const references = names.map((name: unknown): Reference => {
    const picture = readPicture(workspace, name)
    left -= picture.data.length
    if (left < 0) throw new GuestError('tool_refused', 'These images are too large together.')
    return picture
  })
  return { ...input, [FIELD]: references }
}

function readPicture(workspace: string, name: unknown): Reference {
  if (typeof name !== 'string' || !ENDING.test(name)) {
    throw new GuestError('tool_refused', 'A reference has to be the name of an attached image.')
  }
  const part = readAttachment(workspace, name)
  if ('image' in part) return { name, ...part.image }
  throw new GuestError('tool_refused', `${name} is no image.`)
}
