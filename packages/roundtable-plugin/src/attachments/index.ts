export type { AttachmentFailure, AttachmentFailureReason } from './attachment-failure.ts'
export {
  type CollectedAttachments,
  type CollectOptions,
  collectPiAttachments,
  type PreparedImage,
} from './collect-attachments.ts'
export type { ImageFacts } from './image-facts.ts'
