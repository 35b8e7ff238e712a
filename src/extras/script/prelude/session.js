// A session as scripts see it: an id, and copies of what is in its log.

import { now } from 'nano-cordis/host'

class Session {
  constructor(id) {
    this.id = id
  }

  /** The log as it is now. */
  get events() {
    return now('session.read', this.id, 'events')
  }

  /** The newest header: model, system prompt and tools. */
  get header() {
    return now('session.read', this.id, 'header') ?? undefined
  }

  /** The number of the last turn; 0 before the first. */
  get turns() {
    return now('session.read', this.id, 'turns')
  }

  /** Whether a turn is open. */
  get isMidTurn() {
    return now('session.read', this.id, 'isMidTurn')
  }

  /** The messages so far, as the model is to read them. */
  deriveMessages() {
    return now('session.read', this.id, 'messages')
  }

  /** Notes a fact of the plugin's own in the log; others may overlook it. Gives its number. */
  append(type, data) {
    return now('session.append', this.id, type, data ?? null)
  }

  toJSON() {
    return { id: this.id }
  }
}

/** The session that an id stands for. */
export function sessionOf({ id }) {
  return new Session(id)
}
