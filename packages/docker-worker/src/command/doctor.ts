import { DriverError } from '../errors.ts'
import { connectEngine, type Engine } from '../host/container/docker-client.ts'
import { type EngineFinding, engineFindings, imageFindings } from '../host/engine-check.ts'

/** Looks at an engine and an image the way a driver does before its first worker. Never throws for what it finds. */
export async function doctor(socket: string, image: string): Promise<readonly EngineFinding[]> {
  let engine: Engine
  try {
    engine = await connectEngine(socket)
  } catch (error) {
    if (!DriverError.isInstance(error)) throw error
    return [{ id: 'engine', code: error.code, ok: false, detail: error.message }]
  }
  const info = await engine.info()
  const detail = `${info.engineVersion} at ${socket}, API ${engine.address.version}`
  return [
    { id: 'engine', code: 'engine_unreachable', ok: true, detail },
    ...engineFindings(info),
    ...imageFindings(image, await engine.image(image)),
  ]
}
