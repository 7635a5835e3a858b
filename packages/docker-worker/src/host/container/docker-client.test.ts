import { createServer } from 'node:http'
import { join } from 'node:path'
import { tempDir } from '@sandbox/testing'
import { expect, test } from 'vitest'
import { bounded, connectEngine, statusOf } from './docker-client.ts'

test('PD-10 a refusal of the engine is told with the call, its status and at most 300 characters of its words', async () => {
  using dir = tempDir()
  const path = join(dir.path, 'docker.sock')
  const server = createServer((_, response) => {
    response.writeHead(500, { 'content-type': 'application/json' })
    response.end(JSON.stringify({ message: `no space left ${'x'.repeat(5000)}` }))
  })
  await new Promise<void>((resolve) => server.listen(path, resolve))
  const refused: unknown = await connectEngine(path).catch((error: unknown) => error)
  server.closeAllConnections()
  await new Promise((resolve) => server.close(resolve))
  expect(refused).toMatchObject({
    code: 'engine_failed',
    message: expect.stringMatching(/^The engine answered 500 to "version": .*no space left x+$/),
  })
  expect((refused as Error).message.length).toBeLessThan(350)
  expect(statusOf(refused)).toBe(500)
})

test('PD-01 an engine that does not answer is given up, and the call is named', async () => {
  const never = new Promise<never>(() => {})
  await expect(bounded('create', 20, never)).rejects.toMatchObject({
    code: 'engine_unreachable',
    message: 'The engine did not answer "create" within 20 ms.',
  })
})
