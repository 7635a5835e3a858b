import { PI_IMAGE_FILES } from '../image/pi-guest.ts'
import {
  heapFlags,
  IMAGE_FILES,
  type SealedCreateBody,
  type SealedSpec,
  sealedCreateBody,
} from './sealed-spec.ts'

/** Everything that the container of a Pi worker is made from. */
export type PiSpec = Omit<SealedSpec, 'network' | 'program'>

/**
 * The body of `POST /containers/create` for one Pi worker: the walls of a sealed one, with a loopback port, since the
 * agent speaks TCP. It lives as long as its channel is in use. No restart policy: the conversation is in the workspace,
 * and whoever starts the next container knows why the last one ended. Pure.
 */
export function piCreateBody(spec: PiSpec): SealedCreateBody {
  return { ...sealedCreateBody({ ...spec, network: 'loopback' }), Entrypoint: entrypoint(spec) }
}

function entrypoint({ runtime, limits }: PiSpec): string[] {
  const flags = heapFlags(runtime, limits.memoryBytes)
  // The code cache needs an interface that Node calls experimental, on stderr, at every start.
  if (runtime === 'node') flags.push('--disable-warning=ExperimentalWarning')
  return [IMAGE_FILES.runtime, ...flags, PI_IMAGE_FILES.start]
}
