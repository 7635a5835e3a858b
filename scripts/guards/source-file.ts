import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseSync } from 'oxc-parser'

/** One import, re-export, `import()` or `import('…')` type. */
export interface ImportFact {
  readonly specifier: string
  readonly line: number
  /** True when nothing is left of it at run time. */
  readonly typeOnly: boolean
  /** What is taken, by the name it has over there; `*` for everything. */
  readonly names: readonly { readonly name: string; readonly typeOnly: boolean }[]
}

/** One name that a file exports. */
export interface ExportFact {
  readonly name: string
  readonly line: number
  readonly typeOnly: boolean
  /** Declared in this file, so that its doc comment belongs here. */
  readonly declared: boolean
  readonly documented: boolean
}

/** One function with a body, arrow functions and methods included. */
export interface FunctionFact {
  readonly name: string
  readonly line: number
  readonly lines: number
}

/** What the guards need to know about one source file. */
export interface SourceFile {
  /** From the repository's root, with slashes. */
  readonly path: string
  readonly lines: number
  readonly imports: readonly ImportFact[]
  readonly exports: readonly ExportFact[]
  readonly functions: readonly FunctionFact[]
  /** Lines of `throw new Error(`. */
  readonly bareErrors: readonly number[]
  /** Lines of `vi.mock(` and `vi.doMock(`. */
  readonly moduleMocks: readonly number[]
}

interface Node {
  readonly type: string
  readonly start: number
  readonly end: number
  readonly [key: string]: unknown
}

type Parsed = ReturnType<typeof parseSync>

/** Reads one TypeScript file. Throws `TypeError` when it does not parse. */
export function readSourceFile(root: string, path: string): SourceFile {
  return parseSource(path, readFileSync(join(root, path), 'utf8'))
}

/** The same for text that is at hand. */
export function parseSource(path: string, text: string): SourceFile {
  const parsed = parseSync(path, text, { lang: path.endsWith('.tsx') ? 'tsx' : 'ts', sourceType: 'module' })
  if (parsed.errors.length > 0) throw new TypeError(`${path} does not parse: ${parsed.errors[0]?.message}`)
  const lineOf = lineFinder(text)
  const found = walkFacts(parsed.program as unknown as Node, lineOf)
  return {
    path,
    lines: text.split('\n').length - (text.endsWith('\n') ? 1 : 0),
    imports: [...staticImports(parsed, lineOf), ...reExports(parsed, lineOf), ...found.imports],
    exports: exportFacts(parsed, text, lineOf),
    functions: found.functions,
    bareErrors: found.bareErrors,
    moduleMocks: found.moduleMocks,
  }
}

function lineFinder(text: string): (offset: number) => number {
  const starts = [0]
  for (let at = text.indexOf('\n'); at !== -1; at = text.indexOf('\n', at + 1)) starts.push(at + 1)
  return (offset) => {
    const next = starts.findIndex((start) => start > offset)
    return next === -1 ? starts.length : next
  }
}

function staticImports(parsed: Parsed, lineOf: (offset: number) => number): ImportFact[] {
  return parsed.module.staticImports.map((one) => {
    const names = one.entries.map((entry) => ({
      name: entry.importName.kind === 'NamespaceObject' ? '*' : (entry.importName.name ?? 'default'),
      typeOnly: entry.isType,
    }))
    return {
      specifier: one.moduleRequest.value,
      line: lineOf(one.start),
      typeOnly: names.length > 0 && names.every((name) => name.typeOnly),
      names,
    }
  })
}

function reExports(parsed: Parsed, lineOf: (offset: number) => number): ImportFact[] {
  return parsed.module.staticExports.flatMap((one) => {
    const names = one.entries.flatMap((entry) =>
      entry.moduleRequest ? [{ name: entry.importName.name ?? '*', typeOnly: entry.isType }] : [],
    )
    const specifier = one.entries.find((entry) => entry.moduleRequest)?.moduleRequest?.value
    if (specifier === undefined) return []
    return [{ specifier, line: lineOf(one.start), typeOnly: names.every((name) => name.typeOnly), names }]
  })
}

function exportFacts(parsed: Parsed, text: string, lineOf: (offset: number) => number): ExportFact[] {
  const documentedAt = docFinder(parsed, text)
  const declared = declarations(parsed.program as unknown as Node)
  const facts: ExportFact[] = []
  for (const one of parsed.module.staticExports) {
    for (const entry of one.entries) {
      const name =
        entry.exportName.kind === 'None'
          ? '*'
          : entry.exportName.kind === 'Default'
            ? 'default'
            : entry.exportName.name
      const local = entry.moduleRequest ? undefined : (entry.localName.name ?? undefined)
      const places = local === undefined ? [] : (declared.get(local) ?? [])
      facts.push({
        name: name ?? '*',
        line: lineOf(one.start),
        typeOnly: entry.isType,
        declared: places.length > 0,
        documented: documentedAt(one.start) || places.some(documentedAt),
      })
    }
  }
  return facts
}

/** Where each top-level name is declared: the offset at which its statement starts. */
function declarations(program: Node): Map<string, number[]> {
  const found = new Map<string, number[]>()
  for (const statement of program.body as Node[]) {
    const inner = statement.type.startsWith('Export') ? (statement.declaration as Node | null) : statement
    if (!inner) continue
    const list = inner.type === 'VariableDeclaration' ? (inner.declarations as Node[]) : [inner]
    for (const one of list) {
      const name = (one.id as { name?: string } | null | undefined)?.name
      if (name !== undefined) found.set(name, [...(found.get(name) ?? []), statement.start])
    }
  }
  return found
}

function docFinder(parsed: Parsed, text: string): (offset: number) => boolean {
  const docs = parsed.comments.filter((one) => one.type === 'Block' && one.value.startsWith('*'))
  return (offset) => docs.some((one) => one.end <= offset && text.slice(one.end, offset).trim() === '')
}

const FUNCTIONS = new Set(['FunctionDeclaration', 'FunctionExpression', 'ArrowFunctionExpression'])

interface Walked {
  imports: ImportFact[]
  functions: FunctionFact[]
  bareErrors: number[]
  moduleMocks: number[]
}

function walkFacts(program: Node, lineOf: (offset: number) => number): Walked {
  const found: Walked = { imports: [], functions: [], bareErrors: [], moduleMocks: [] }
  const visit = (node: Node, name: string) => {
    const line = lineOf(node.start)
    if (FUNCTIONS.has(node.type) && node.body) {
      const own = (node.id as { name?: string } | null)?.name
      found.functions.push({ name: own ?? name, line, lines: lineOf(node.end) - line + 1 })
    }
    if (isBareThrow(node)) found.bareErrors.push(line)
    if (isModuleMock(node)) found.moduleMocks.push(line)
    const specifier = lazySpecifier(node)
    if (specifier !== undefined) {
      const typeOnly = node.type === 'TSImportType'
      const taken = (node.qualifier as { name?: string } | null | undefined)?.name ?? '*'
      found.imports.push({ specifier, line, typeOnly, names: [{ name: taken, typeOnly }] })
    }
    for (const child of children(node)) visit(child, nameFor(node, name))
  }
  visit(program, '')
  return found
}

function children(node: Node): Node[] {
  const isNode = (value: unknown): value is Node =>
    typeof value === 'object' && value !== null && typeof (value as Node).type === 'string'
  return Object.values(node).flatMap((value) =>
    Array.isArray(value) ? value.filter(isNode) : isNode(value) ? [value] : [],
  )
}

/** The name that a function inside `node` goes by: its variable, its method or its property. */
function nameFor(node: Node, outer: string): string {
  const key = (node.type === 'VariableDeclarator' ? node.id : node.key) as { name?: string } | undefined
  return key?.name ?? outer
}

/** `import('x')` as an expression or as a type, when its argument is plain text. */
function lazySpecifier(node: Node): string | undefined {
  if (node.type !== 'ImportExpression' && node.type !== 'TSImportType') return undefined
  const source = node.source as { value?: unknown; type: string; quasis?: { value: { cooked: string } }[] }
  if (typeof source.value === 'string') return source.value
  return source.quasis?.length === 1 ? source.quasis[0]?.value.cooked : undefined
}

function isBareThrow(node: Node): boolean {
  if (node.type !== 'ThrowStatement') return false
  const thrown = node.argument as Node
  return thrown.type === 'NewExpression' && (thrown.callee as { name?: string }).name === 'Error'
}

function isModuleMock(node: Node): boolean {
  if (node.type !== 'CallExpression') return false
  const callee = node.callee as { type: string; object?: { name?: string }; property?: { name?: string } }
  if (callee.type !== 'MemberExpression' || callee.object?.name !== 'vi') return false
  return callee.property?.name === 'mock' || callee.property?.name === 'doMock'
}
