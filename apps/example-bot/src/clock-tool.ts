import type { HostTool } from '@sandbox/broker'

/** A tool of the host for the demo's agent, which has no clock that it could trust: the time in the host's zone. */
export function clockTool(options: { timeZone: string; now?: () => Date }): HostTool {
  const show = new Intl.DateTimeFormat('en-GB', {
    timeZone: options.timeZone,
    dateStyle: 'full',
    timeStyle: 'short',
  })
  return {
    name: 'clock',
    description: 'Tells the date and the time of the host.',
    parameters: { type: 'object', properties: {}, additionalProperties: false },
    execute: () => show.format(options.now?.() ?? new Date()),
  }
}
