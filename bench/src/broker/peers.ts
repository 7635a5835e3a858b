import { type ChildProcess, execFileSync, fork, spawn, spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import type { AddressInfo } from 'node:net'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { endAll, type Part, startPart } from '../part.ts'
import { type Door, get } from './load.ts'

/** Everything that is compared, each in its own process. Peers that this machine lacks are absent. */
export interface Peers extends AsyncDisposable {
  readonly direct: Door
  readonly bare: Door & { readonly part: Part }
  readonly nginx: Door | undefined
  readonly portkey: Door | undefined
  readonly ours: Part
  /** So many brokers of ours, freshly bound. */
  doors(count: number): Promise<Door[]>
  /** The same two under Bun. */
  readonly bun: Pick<Peers, 'bare' | 'ours' | 'doors'> | undefined
}

/** Starts all of them. */
export async function startPeers(): Promise<Peers> {
  const dir = mkdtempSync(join(tmpdir(), 'bench-broker-'))
  const children: ChildProcess[] = []
  const part = (file: string, args: readonly string[] = [], execPath = process.execPath) =>
    startPart(children, new URL(`./${file}`, import.meta.url), { args, execPath })
  const { first } = await part('upstream.ts')
  const url = `http://127.0.0.1:${(first as { port: number }).port}`
  const pair = async (name: string, execPath?: string) => {
    const own = join(dir, name)
    mkdirSync(own)
    const socketPath = join(own, 'bare.sock')
    const bare = await part('bare.ts', [socketPath, url], execPath)
    const ours = await part('ours.ts', [own, url], execPath)
    const doors = async (count: number) => {
      const { doors } = await ours.ask<{ doors: { socketPath: string; nonce: string }[] }>({ open: count })
      return doors.map((door) => ({
        origin: 'http://broker',
        socketPath: door.socketPath,
        headers: { 'x-sandbox-turn': door.nonce },
      }))
    }
    return { bare: { origin: 'http://broker', socketPath, part: bare }, ours, doors }
  }
  const bun = findBun()
  return {
    direct: { origin: url },
    ...(await pair('node')),
    bun: bun === undefined ? undefined : await pair('bun', bun),
    nginx: await startNginx(dir, url, children),
    portkey: await startPortkey(url, children),
    [Symbol.asyncDispose]: async () => {
      await endAll(children)
      rmSync(dir, { recursive: true, force: true })
    },
  }
}

function findBun(): string | undefined {
  const { stdout } = spawnSync('bun', ['-e', 'console.log(process.execPath)'], { encoding: 'utf8' })
  if (typeof stdout === 'string' && stdout.trim() !== '') return stdout.trim()
  console.error('bench: bun is not installed: its rows are left out')
  return undefined
}

/** Adds a header and passes everything on. */
async function startNginx(dir: string, url: string, children: ChildProcess[]): Promise<Door | undefined> {
  try {
    execFileSync('nginx', ['-v'], { stdio: 'ignore' })
  } catch {
    console.error('bench: nginx is not installed (Debian: nginx-light): its row is left out')
    return undefined
  }
  const socketPath = join(dir, 'nginx.sock')
  const config = join(dir, 'nginx.conf')
  writeFileSync(
    config,
    `daemon off; worker_processes 1; pid ${dir}/nginx.pid; error_log ${dir}/nginx.err;
    events { worker_connections 512; }
    http { access_log off; client_max_body_size 40m; client_body_buffer_size 1m; keepalive_requests 1000000;
      client_body_temp_path ${dir}/b; proxy_temp_path ${dir}/p; fastcgi_temp_path ${dir}/f; uwsgi_temp_path ${dir}/u; scgi_temp_path ${dir}/s;
      upstream up { server ${new URL(url).host}; keepalive 64; keepalive_requests 1000000; }
      server { listen unix:${socketPath}; location / { proxy_pass http://up; proxy_http_version 1.1; proxy_buffering off;
        proxy_set_header connection ""; proxy_set_header authorization "Bearer sk-bench"; } } }`,
  )
  children.push(spawn('nginx', ['-c', config, '-e', `${dir}/nginx.err`], { stdio: 'inherit' }))
  const door = { origin: 'http://broker', socketPath }
  return (await answers(door)) ? door : undefined
}

async function startPortkey(url: string, children: ChildProcess[]): Promise<Door | undefined> {
  const port = await freePort()
  const file = fileURLToPath(new URL('./portkey.ts', import.meta.url))
  const env = { ...process.env, NODE_ENV: 'production', TRUSTED_CUSTOM_HOSTS: '127.0.0.1,localhost' }
  children.push(fork(file, [`--port=${port}`, '--headless'], { env, stdio: 'ignore' }))
  const headers = {
    'x-portkey-provider': 'openai',
    'x-portkey-custom-host': `${url}/v1`,
    authorization: 'Bearer sk-bench',
  }
  const door = { origin: `http://127.0.0.1:${port}`, headers }
  if (await answers(door)) return door
  console.error('bench: @portkey-ai/gateway did not answer: its row is left out')
  return undefined
}

async function answers(door: Door): Promise<boolean> {
  for (let times = 0; times < 60; times += 1) {
    if ((await get(door).catch(() => 0)) === 200) return true
    await sleep(250)
  }
  return false
}

function freePort(): Promise<number> {
  return new Promise((resolve) => {
    const server = createServer().listen(0, '127.0.0.1', () => {
      const { port } = server.address() as AddressInfo
      server.close(() => resolve(port))
    })
  })
}
