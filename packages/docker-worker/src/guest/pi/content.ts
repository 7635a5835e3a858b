import { existsSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import type { ContentKit, PiExtension, WorkerContent } from '../../pi-content.ts'
import { GuestError } from '../shared/errors.ts'
import { isObject } from '../shared/json.ts'
import { loadSkills, type SkillIndex } from './skills.ts'
import { isListOf } from './turn-check.ts'

/** Content with every default filled in. */
export interface LoadedContent {
  readonly modelLike: string | undefined
  readonly prompt: string | undefined
  readonly skills: SkillIndex
  /** `undefined` = all. */
  readonly brokerTools: readonly string[] | undefined
  readonly toolNames: readonly string[]
  readonly extensions: readonly PiExtension[]
}

const ENTRIES = ['index.mjs', 'index.js', 'index.cjs']

/**
 * Asks the operator's content module what the workers of a profile are made of. A folder without a module is no
 * content. Throws a {@link GuestError} `content_invalid` that names the field.
 */
export async function loadContent(folder: string, profile: string, kit: ContentKit): Promise<LoadedContent> {
  const entry = ENTRIES.map((name) => join(folder, name)).find((path) => existsSync(path))
  const content = entry === undefined ? {} : await callModule(entry, profile, kit)
  const { model, prompt, skillsDir, brokerTools, toolNames = [], extensions = [] } = content
  return {
    modelLike: isObject(model) ? text('model.id', model.id) : undefined,
    prompt: prompt === undefined ? undefined : text('prompt', prompt),
    skills: loadSkills(skillsDir === undefined ? undefined : resolve(folder, text('skillsDir', skillsDir))),
    brokerTools: brokerTools === undefined ? undefined : texts('brokerTools', brokerTools),
    toolNames: texts('toolNames', toolNames),
    extensions: functions('extensions', extensions),
  }
}

async function callModule(entry: string, profile: string, kit: ContentKit): Promise<Partial<WorkerContent>> {
  const module: unknown = await import(pathToFileURL(entry).href).catch((cause: unknown) => {
    throw new GuestError('content_invalid', `${entry} cannot be loaded: ${messageOf(cause)}`, { cause })
  })
  const call = isObject(module) ? (module.workerContent ?? defaultOf(module)) : undefined
  if (typeof call !== 'function') {
    throw new GuestError('content_invalid', `${entry} exports no function workerContent`)
  }
  try {
    const content: unknown = await call(profile, kit)
    if (isObject(content)) return content
  } catch (cause) {
    throw new GuestError('content_invalid', `workerContent failed: ${messageOf(cause)}`, { cause })
  }
  throw new GuestError('content_invalid', 'workerContent has to return an object')
}

/** A CommonJS module is seen as its `default`. */
function defaultOf(module: Record<string, unknown>): unknown {
  return isObject(module.default) ? module.default.workerContent : undefined
}

function text(field: string, value: unknown): string {
  if (typeof value === 'string' && value !== '') return value
  throw new GuestError('content_invalid', `workerContent: ${field} has to be a text`)
}

function texts(field: string, value: unknown): readonly string[] {
  if (isListOf(value, (one) => typeof one === 'string')) return value as readonly string[]
  throw new GuestError('content_invalid', `workerContent: ${field} has to be a list of names`)
}

function functions(field: string, value: unknown): readonly PiExtension[] {
  if (isListOf(value, (one) => typeof one === 'function')) return value as readonly PiExtension[]
  throw new GuestError('content_invalid', `workerContent: ${field} has to be a list of functions`)
}

function messageOf(cause: unknown): string {
  return cause instanceof Error ? cause.message : String(cause)
}
