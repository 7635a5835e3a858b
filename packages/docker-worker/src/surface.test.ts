import { expect, test } from 'vitest'
import * as surface from './index.ts'

test('the names that users import', () => {
  expect(Object.keys(surface).sort()).toEqual([
    'DriverError',
    'buildImage',
    'createDockerDriver',
    'createProcessDriver',
    'createWarmPool',
    'engineSocketPath',
    'exitFailure',
    'forgetSpeaker',
    'removeWorkspace',
    'workspaceSize',
  ])
})

test('a DriverError of another copy of this package is one', () => {
  const other = Object.defineProperty(new Error('x'), Symbol.for('sandbox.DriverError'), { value: true })
  expect(surface.DriverError.isInstance(other)).toBe(true)
  expect(surface.DriverError.isInstance(new surface.DriverError('closed', 'x'))).toBe(true)
  expect(surface.DriverError.isInstance(new Error('x'))).toBe(false)
  expect(surface.DriverError.isInstance(undefined)).toBe(false)
})
