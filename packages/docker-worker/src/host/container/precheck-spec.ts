import {
  heapFlags,
  IMAGE_FILES,
  type SealedCreateBody,
  type SealedSpec,
  sealedCreateBody,
} from './sealed-spec.ts'

/** Everything that the container of one precheck is made from. */
export type PrecheckSpec = Omit<SealedSpec, 'network' | 'program'>

/**
 * The body of `POST /containers/create` for one run of a precheck (PC-09): the walls of a sealed one, another program,
 * and a workspace that nothing can be written to, whatever the worker's spec says. Pure.
 */
export function precheckCreateBody(spec: PrecheckSpec): SealedCreateBody {
  const worker = { ...spec.worker, workspaceReadOnly: true }
  const { runtime, limits } = spec
  const Entrypoint = [IMAGE_FILES.runtime, ...heapFlags(runtime, limits.memoryBytes), IMAGE_FILES.precheck]
  return { ...sealedCreateBody({ ...spec, worker }), Entrypoint }
}
