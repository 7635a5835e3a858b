export { DriverError, type DriverErrorCode } from './errors.ts'
export type { Driver, Worker, WorkerExit, WorkerSpec } from './host/driver.ts'
export type {
  BuildImageOptions,
  BuiltImage,
  DockerDriverOptions,
  ProcessDriverOptions,
  WorkerLimits,
  WorkerUser,
} from './options.ts'
