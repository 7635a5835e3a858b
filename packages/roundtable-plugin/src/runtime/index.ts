export type { FailureCategory, TurnEvent, TurnState } from './turn-state.ts'
