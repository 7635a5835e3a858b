/** What a command may touch. */
export interface CommandPorts {
  readonly env: { readonly DOCKER_HOST?: string | undefined }
  readonly signal: AbortSignal
  /** One line of result. */
  out(line: string): void
  /** One line that says what happens right now. */
  progress(line: string): void
  /** Bytes of an untrusted program: 1 is stdout, 2 is stderr. */
  write(stream: number, chunk: Uint8Array): void
}
