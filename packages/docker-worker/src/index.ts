export { DriverError, type DriverErrorCode } from './errors.ts'
export { engineSocketPath } from './host/container/engine-socket.ts'
export { type ExitContext, exitFailure } from './host/container/exit-failure.ts'
export { createDockerDriver } from './host/docker-driver.ts'
export type { Driver, Worker, WorkerExit, WorkerSpec } from './host/driver.ts'
export { buildImage } from './host/image/build-image.ts'
export { createProcessDriver } from './host/process-driver.ts'
export { removeWorkspace } from './host/remove-tree.ts'
export { forgetSpeaker } from './host/speaker-memory.ts'
export type {
  ReadyWorker,
  WarmLimits,
  WarmPoolOptions,
  WarmProblem,
  WorkerPlace,
} from './host/warm-pool/pool-options.ts'
export { createWarmPool, type WarmPool } from './host/warm-pool.ts'
export { type WorkspaceSize, type WorkspaceSizeOptions, workspaceSize } from './host/workspace-size.ts'
export type {
  BuildImageOptions,
  BuiltImage,
  DockerDriverOptions,
  ProcessDriverOptions,
  WorkerGuest,
  WorkerLimits,
  WorkerNetwork,
  WorkerRuntime,
  WorkerUser,
} from './options.ts'
