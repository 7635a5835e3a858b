export { type CallTelemetryOptions, callTelemetry } from './call-telemetry.ts'
