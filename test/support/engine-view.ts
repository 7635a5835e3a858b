import { readdirSync, readFileSync } from 'node:fs'
import { request } from 'node:http'

/** What an engine and the kernel tell about containers, without any of our own code. */
export class EngineView {
  readonly #socket: string

  constructor(socket: string) {
    this.#socket = socket
  }

  /** Ids of an install’s containers, stopped ones too. */
  async containers(installId: string): Promise<string[]> {
    const filters = encodeURIComponent(JSON.stringify({ label: [`sandbox.install=${installId}`] }))
    const { body } = await this.#get(`/containers/json?all=1&filters=${filters}`)
    return (JSON.parse(body.toString()) as { Id: string }[]).map((one) => one.Id)
  }

  /** `docker inspect`, as text. */
  async inspect(id: string): Promise<string> {
    return (await this.#get(`/containers/${id}/json`)).body.toString()
  }

  /** True when the engine knows the container. */
  async has(id: string): Promise<boolean> {
    return (await this.#get(`/containers/${id}/json`)).status === 200
  }

  /** Files below a path inside a container, as one archive; empty when it is not there. */
  async files(id: string, path: string): Promise<Buffer> {
    const { status, body } = await this.#get(`/containers/${id}/archive?path=${encodeURIComponent(path)}`)
    return status === 200 ? body : Buffer.alloc(0)
  }

  /** Environment and command line of every process of a container, as the kernel has them. */
  async processes(id: string): Promise<string> {
    const { body } = await this.#get(`/containers/${id}/top?ps_args=-eo%20pid`)
    const { Processes = [] } = JSON.parse(body.toString()) as { Processes?: string[][] }
    return Processes.flat()
      .map((pid) => `${kernel(pid, 'environ')}\n${kernel(pid, 'cmdline')}`)
      .join('\n')
  }

  async #get(path: string): Promise<{ status: number; body: Buffer }> {
    return await new Promise((done, failed) => {
      const sent = request({ socketPath: this.#socket, path, headers: { host: 'engine' } }, (answer) => {
        const chunks: Buffer[] = []
        answer.on('data', (chunk: Buffer) => chunks.push(chunk))
        answer.on('error', failed)
        answer.on('end', () => done({ status: answer.statusCode ?? 0, body: Buffer.concat(chunks) }))
      })
      sent.on('error', failed).end()
    })
  }
}

function kernel(pid: string, name: string): string {
  return readFileSync(`/proc/${pid}/${name}`, 'utf8')
}

/** Every file below a directory of this machine, one after the other. */
export function everyFile(dir: string): Buffer {
  const files = readdirSync(dir, { recursive: true, withFileTypes: true }).filter((one) => one.isFile())
  return Buffer.concat(files.map((one) => readFileSync(`${one.parentPath}/${one.name}`)))
}
