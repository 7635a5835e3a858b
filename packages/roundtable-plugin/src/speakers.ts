import type { HostServices, ServiceKey } from './host-contract.ts'

/** Declared by hosts that resolve speakers: pi-roundtable 0.9 and later. */
const IDENTITY: ServiceKey<unknown> = Object.freeze({ id: 'roundtable.identity' })

/** True on a host that says who speaks: there, a message without a resolved speaker is nobody's. */
export function resolvesSpeakers(services: Pick<HostServices, 'find'>): boolean {
  return services.find(IDENTITY) !== undefined
}
