/** Values that the host decides. They are written into the body wherever a table says so. */
export interface RequestHost {
  /** The model that is called, whatever the guest named. */
  readonly model: string
  /** Most tokens that one answer may have. */
  readonly maxOutputTokens: number
  /**
   * Fields that pass although the table drops them or does not know them, by the dotted names that `dropped`
   * reports: `top_k`, `messages[].reasoning_content`. What a table refuses stays refused.
   */
  readonly allowFields?: ReadonlySet<string>
  /** Top-level fields that the operator sets, whatever the guest sent: `{ service_tier: 'flex' }`. JSON values. */
  readonly setFields?: Readonly<Record<string, unknown>>
  /**
   * Says whether this scope created an account-side thing: a response, conversation, item or file. Without this
   * function no id passes.
   */
  ownsId?(id: string): boolean
}

/** What a route needs to know about a request that was let through. */
export interface RequestFacts {
  /** Whether the answer comes as an event stream. */
  readonly stream: boolean
  /**
   * Whether the guest itself asked for usage in the stream. When not, the last chunk, which carries usage and no
   * choice, is the host's: the guest does not expect it.
   */
  readonly usageAsked: boolean
  /** The model that the guest named, at most 128 characters; it is never called. */
  readonly guestModel?: string
  /** The limit of output tokens that travels. */
  readonly outputTokens: number
}

/** A family of requests as data: what becomes of each field. Built once, used for any number of calls. */
export interface RequestTable {
  readonly family: string
  readonly body: ObjectRule
}

/** Host values that a field can be given. */
export type HostValue = 'model' | 'maxOutputTokens'

/**
 * What becomes of one field. `keep`: any value, as it is. `drop`: cut out and reported. `set`: the host's value
 * is written over it. `cap`: a whole number from 1 to the host's value stays, anything else becomes the host's.
 * Else the value is checked.
 */
export type FieldRule = 'keep' | 'drop' | HostRule | ValueRule

/** A field that the host gives its value, or its upper limit. */
export type HostRule =
  | { readonly set: HostValue; readonly cap?: never }
  | { readonly cap: HostValue; readonly set?: never }

/** What a value may be, by its JSON type. A type that is not listed is not admitted. */
export interface ValueRule {
  readonly null?: true
  readonly boolean?: true | readonly boolean[]
  readonly number?: true | NumberRule
  readonly string?: true | StringRule
  readonly array?: ArrayRule
  readonly object?: ObjectRule
  /** What a value does that is not admitted: the request is refused (default), or the field is dropped. */
  readonly otherwise?: 'refuse' | 'drop'
  /** Why it is not admitted, for the refusal: `must be inline: a data: URL`. */
  readonly problem?: string
  readonly set?: never
  readonly cap?: never
}

/** Which numbers pass. */
export interface NumberRule {
  readonly min?: number
  readonly max?: number
  readonly integer?: true
}

/** Which strings pass: all that is given must hold. */
export interface StringRule {
  /** Longest JSON text between the quotes, in bytes. */
  readonly maxBytes?: number
  readonly oneOf?: readonly string[]
  /** For the decoded text. Strings of more than 4 KiB fail it. No `g` or `y` flag. */
  readonly pattern?: RegExp
  /** For the first 64 characters of the decoded text, of any length. Not for text beyond ASCII. No `g` or `y` flag. */
  readonly start?: RegExp
  /** An id that {@link RequestHost.ownsId} knows. */
  readonly owned?: true
}

/** Which arrays pass. An item that its rule does not admit refuses the request, whatever `otherwise` says. */
export interface ArrayRule {
  readonly items: ValueRule | 'keep'
  /** Most items. */
  readonly max: number
}

/** Which objects pass. Checks run when the object ends, so the order of its fields does not matter. */
export interface ObjectRule {
  readonly fields: ReadonlyMap<string, FieldRule>
  /** What becomes of fields that are not listed. Default: `drop`. */
  readonly others?: FieldRule
  /** Fields without which the object is refused. `null` counts as present. */
  readonly required?: readonly string[]
  /** Kinds of object under one rule, told apart by a field such as `type`. */
  readonly variants?: Variants
  /** A check of the whole object, or what depends on several of its fields. Runs last. */
  readonly close?: (object: ClosedObject) => void
}

/** Kinds of object, told apart by the string in one of their fields. */
export interface Variants {
  readonly by: string
  /** The kind of an object without that field; when this is not given either, such an object is refused. */
  readonly missing?: string
  /** The fields of each kind, `by` itself aside. Listed fields of other kinds are dropped; other kinds refused. */
  readonly of: Readonly<Record<string, VariantFields>>
}

/** The fields of one kind of object. */
export interface VariantFields {
  readonly required: readonly string[]
  readonly optional?: readonly string[]
}

/** An object whose end was reached, as a check sees it. Names are of direct fields. */
export interface ClosedObject {
  readonly host: RequestHost
  /** What the check learned. Set by the rule of the whole body. */
  readonly facts: { -readonly [K in keyof RequestFacts]?: RequestFacts[K] }
  /** Whether the field is there and was not dropped. */
  has(name: string): boolean
  /** The value that the guest sent, when it is a scalar of at most 4 KiB. */
  scalar(name: string): string | number | boolean | null | undefined
  /** The field's JSON value as it stands now, when it was sent in at most 64 KiB. */
  value(name: string): unknown
  /** Cuts the field out and reports it. */
  drop(name: string): void
  /** Writes a JSON value over the field, or adds the field. Reported when the guest had sent another value. */
  set(name: string, value: unknown): void
  /** Of the object's JSON as it was sent, in bytes. */
  readonly size: number
  /** The object's JSON as it stands now, with all that is cut and written so far. */
  text(): string
  /** Refuses the request. */
  refuse(problem: string, name?: string): never
}

/** A request that may be sent, or why it may not. */
export type RewrittenRequest =
  | {
      readonly ok: true
      /** The very bytes that were given when nothing had to change; else with spans cut and written. */
      readonly bytes: Uint8Array
      /** Fields that were cut out or set otherwise: dotted names, at most 32, each at most 128 characters. */
      readonly dropped: readonly string[]
      readonly facts: RequestFacts
    }
  | {
      readonly ok: false
      /** What was wrong. Never a value. */
      readonly problem: string
      /** Where: `messages[3].content[0].image_url.url`; empty for the body as a whole. Cleaned and bounded. */
      readonly path: string
    }

/** A body, and what it is held against. */
export interface RewriteOptions {
  /** One JSON text. Must not change until the promise settles; is never changed itself, unless `reuse` says so. */
  readonly bytes: Uint8Array
  /**
   * Gives the bytes and all memory of their `ArrayBuffer` away: the result may be written over them, and a few bytes
   * beyond. Omitted = false.
   */
  readonly reuse?: boolean
  readonly table: RequestTable
  readonly host: RequestHost
  /** Ends the work: the promise rejects with its reason. */
  readonly signal?: AbortSignal
}
