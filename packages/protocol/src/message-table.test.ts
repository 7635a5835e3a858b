import { expect, test } from 'vitest'
import { MESSAGE_TABLE } from './message-table.ts'
import { CALL_ROUTES, WORKER_ROUTES } from './worker-routes.ts'

test('decision 4: every route stands in the message table, with its token and its limits', () => {
  const rows = MESSAGE_TABLE.map(
    (row) => `${row.method} ${row.path} ${row.mode} ${row.token} ${row.requestBytes} ${row.answerBytes}`,
  )
  expect(rows).toEqual([
    'POST /worker/hello both none 65536 65536',
    'GET /worker/next both worker 0 262144',
    'POST /worker/ack both worker 65536 65536',
    'POST /worker/heartbeat pi worker 65536 65536',
    'POST /worker/progress both worker 65536 65536',
    'POST /worker/result both worker 1048576 65536',
    'GET /worker/config pi worker 0 65536',
    'POST /model sealed turn 262144 1048576',
    'POST /tools/<name> sealed turn 262144 1048576',
    'POST /mcp/<server> sealed turn 262144 1048576',
  ])
  const paths = new Set(MESSAGE_TABLE.map((row) => row.path.replace(/<.*>/, '')))
  for (const path of [...Object.values(WORKER_ROUTES), ...Object.values(CALL_ROUTES)])
    expect(paths).toContain(path)
})
