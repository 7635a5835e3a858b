import { request } from 'node:http'
import { dockerSocket } from '@sandbox/testing'

/** The engine of the Docker tests. */
export const ENGINE = dockerSocket() ?? '/nonexistent'

/** One GET of the engine's interface. */
export async function engineGet(path: string): Promise<{ status: number; body: Buffer }> {
  return await new Promise((resolve, reject) => {
    const sent = request({ socketPath: ENGINE, path, headers: { host: 'engine' } }, (answer) => {
      const chunks: Buffer[] = []
      answer.on('data', (chunk: Buffer) => chunks.push(chunk))
      answer.on('error', reject)
      answer.on('end', () => resolve({ status: answer.statusCode ?? 0, body: Buffer.concat(chunks) }))
    })
    sent.on('error', reject)
    sent.end()
  })
}

/** Ids of the containers of an install, stopped ones too. */
export async function containersOf(installId: string): Promise<string[]> {
  const filters = encodeURIComponent(JSON.stringify({ label: [`sandbox.install=${installId}`] }))
  const { body } = await engineGet(`/containers/json?all=1&filters=${filters}`)
  return (JSON.parse(body.toString()) as { Id: string }[]).map(({ Id }) => Id)
}
