export { type DiscordOptions, discordSurface } from './discord-surface.ts'
