import type { FuzzTarget } from '../target.ts'
import { byteScan } from './byte-scan.ts'
import { chatInput } from './chat-input.ts'
import { eventScan } from './event-scan.ts'
import { events } from './events.ts'
import { framing } from './framing.ts'
import { head } from './head.ts'
import { json } from './json.ts'
import { jsonScan } from './json-scan.ts'
import { large } from './large.ts'
import { schema } from './schema.ts'
import { chatTables, responsesTables } from './tables.ts'

/** All of them, in the order in which they run. */
export const targets: readonly FuzzTarget[] = [
  head,
  framing,
  chatInput,
  chatTables,
  responsesTables,
  json,
  events,
  eventScan,
  byteScan,
  jsonScan,
  large,
  schema,
]
