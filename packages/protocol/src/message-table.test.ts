import { expect, test } from 'vitest'
import { MESSAGE_TABLE } from './message-table.ts'
import { CALL_ROUTES, PI_CALL_ROUTES, WORKER_ROUTES } from './worker-routes.ts'

test('decision 4: every route stands in the message table, with its token and its limits', () => {
  const rows = MESSAGE_TABLE.map(
    (row) => `${row.method} ${row.path} ${row.mode} ${row.token} ${row.requestBytes} ${row.answerBytes}`,
  )
  expect(rows).toEqual([
    'POST /worker/hello all none 65536 65536',
    'GET /worker/next sealed worker 0 262144',
    'GET /worker/next pi worker 0 100663296',
    'GET /worker/next precheck worker 0 65536',
    'POST /worker/ack all worker 65536 65536',
    'POST /worker/heartbeat pi worker 65536 65536',
    'POST /worker/progress both worker 65536 65536',
    'POST /worker/result sealed worker 1048576 65536',
    'POST /worker/result pi worker 75497472 65536',
    'POST /worker/result precheck worker 65536 65536',
    'GET /worker/config pi worker 0 65536',
    'POST /model sealed turn 262144 1048576',
    'POST /tools/<name> sealed turn 262144 1048576',
    'POST /mcp/<server> sealed turn 262144 1048576',
    'POST /mcp/<server> precheck none 65536 1048576',
    'POST /anthropic/v1/messages pi turn 33554432 268435456',
    'POST /anthropic/v1/messages/count_tokens pi turn 33554432 33554432',
    'POST /v1/messages pi turn 33554432 268435456',
    'POST /v1/messages/count_tokens pi turn 33554432 33554432',
    'POST /tools/<name> pi turn 33554432 33554432',
    'POST /mcp/<server> pi turn 4194304 4194304',
    'POST /compaction/compact pi turn 100663296 100663296',
    'POST /compaction/report pi turn 65536 65536',
  ])
  const paths = new Set(MESSAGE_TABLE.map((row) => row.path.replace(/<.*>/, '')))
  for (const path of [
    ...Object.values(WORKER_ROUTES),
    ...Object.values(CALL_ROUTES),
    ...Object.values(PI_CALL_ROUTES),
  ])
    expect(paths).toContain(path)
})
