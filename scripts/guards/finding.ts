/** One thing that a guard has to say. Only `fail` makes a run red. */
export interface Finding {
  readonly level: 'fail' | 'warn'
  /** The rule's name, for example `engine-knows-no-broker`. */
  readonly rule: string
  /** A path from the repository's root, with `:line` where there is one. */
  readonly where: string
  readonly problem: string
}

/** A finding that makes the run red. */
export function fail(rule: string, where: string, problem: string): Finding {
  return { level: 'fail', rule, where, problem }
}

/** A finding that is only shown. */
export function warn(rule: string, where: string, problem: string): Finding {
  return { level: 'warn', rule, where, problem }
}
