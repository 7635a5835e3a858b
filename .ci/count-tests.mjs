import { readFileSync } from 'node:fs'

/**
 * Reads vitest's JSON report and prints `passed failed problem…` on one line. A problem is a reason for the run to
 * count as failed although no test did: no report, a file that did not load, Docker tests that did not run.
 *
 * usage: count-tests.mjs REPORT [docker | docker-as-root]. Files named `.root.docker.test.ts` need a root
 * shell and may be skipped elsewhere.
 */
function count(path, expected = 'docker') {
  let report
  try {
    report = JSON.parse(readFileSync(path, 'utf8'))
  } catch {
    return { passed: 0, failed: 0, problem: 'there is no report of its tests' }
  }
  const statuses = (files) => files.flatMap((file) => file.assertionResults.map((one) => one.status))
  const all = statuses(report.testResults)
  const passed = all.filter((status) => status === 'passed').length
  const failed = all.filter((status) => status === 'failed').length
  const unloaded = report.testResults.filter(
    (file) => file.status === 'failed' && !file.assertionResults.some((one) => one.status === 'failed'),
  )
  const docker = statuses(report.testResults.filter((file) => needsDocker(file.name, expected)))
  const dockerPassed = docker.filter((status) => status === 'passed').length
  const dockerSkipped = docker.filter((status) => status !== 'passed' && status !== 'failed').length
  const problem =
    unloaded.length > 0
      ? `${unloaded.length} test files failed outside their tests`
      : dockerPassed === 0
        ? 'no Docker test ran'
        : dockerSkipped > 0
          ? `${dockerSkipped} Docker tests were skipped`
          : ''
  return { passed, failed, problem }
}

function needsDocker(name, expected) {
  return (
    name.endsWith('.docker.test.ts') &&
    (expected === 'docker-as-root' || !name.endsWith('.root.docker.test.ts'))
  )
}

const { passed, failed, problem } = count(process.argv[2], process.argv[3])
console.log(passed, failed, problem)
