export type { KeyFile, KeyFileExplanation, KeyFileOptions } from './key-file.ts'
export { keyFile } from './key-file.ts'
