import { DriverError } from '../../errors.ts'
import type { Engine, EngineImage } from '../container/docker-client.ts'
import { CONTENT_LABEL } from './image-archive.ts'

/**
 * Deletes the image of ours that a tag led to before a build, when no other name leads to it and no container uses it.
 * Says in one line what became of it; `undefined` when there was none, or nothing of ours. Rejects never: what is left
 * costs disk and nothing else.
 */
export async function removeReplaced(
  engine: Engine,
  before: EngineImage | undefined,
  id: string,
): Promise<string | undefined> {
  if (before === undefined || before.id === id || before.labels[CONTENT_LABEL] === undefined) return undefined
  const name = before.id.slice(0, 19)
  try {
    const now = await engine.image(before.id)
    if (now === undefined) return undefined
    if (now.tags.length > 0) return `before   ${name} stays: ${now.tags.join(', ')}`
    const gone = (await engine.removeImage(before.id)) === 'gone'
    return gone ? `before   ${name} is deleted` : `before   ${name} stays: a container uses it`
  } catch (error) {
    if (!DriverError.isInstance(error)) throw error
    return `before   ${name} stays: ${error.message}`
  }
}
