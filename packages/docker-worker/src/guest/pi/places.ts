/** Where the image keeps the program that the container starts. */
export const START_FILE = '/sandbox/pi-start.cjs'

/** Where the image keeps the operator's content. */
export const CONTENT_DIR = '/sandbox/content'
