import type { KeyFile } from '@sandbox/credential-scope/sources'
import { Routes } from '../operator/routes.ts'

/** The name of the stand-in's model. */
const MODEL = 'demo'
const ENDPOINT = '/chat/completions'

/** Every channel sealed, and answered by one service on loopback that speaks Chat Completions. */
export function standInRoutes(options: {
  /** Full URL of its endpoint. */
  modelUrl: string
  channels: readonly string[]
  keys: Pick<KeyFile, 'explain' | 'getter'>
}): Routes {
  const { modelUrl, channels, keys } = options
  const url = modelUrl.endsWith(ENDPOINT) ? modelUrl.slice(0, -ENDPOINT.length) : modelUrl
  return new Routes(
    {
      providers: { 'stand-in': { api: 'openai', url, model: MODEL, allowHttp: true } },
      channels: Object.fromEntries(channels.map((key) => [key, { mode: 'sealed' as const }])),
    },
    keys,
  )
}
