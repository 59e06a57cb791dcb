import { useEffect, useRef } from 'preact/hooks'
import type * as api from './api'
import { contact, read } from './http'

// pace is how long lists wait at least before they are read anew, as the controller
// says: longer where many pages are open.
export const pace = { ms: 1000 }

// JobEvent is a job after a change, with the lines of its timeline that came with it.
// was is its state before; none: it is new.
export type JobEvent = api.Job & { version: number; was?: string; lines?: api.Event[] }

// NodeEvent is a node after a change of its state; "gone" if it was dropped.
export interface NodeEvent {
  name: string
  state: string
  reason?: string
}

// Events is what a page does with what it hears.
export interface Events {
  job?: (e: JobEvent) => void
  node?: (e: NodeEvent) => void
  reset: () => void // events were missed: read anew
}

// useEvents listens to the controller's stream of changes for as long as the
// component is there. The browser goes on after the last event by itself when a
// connection breaks; where it was refused, we begin anew and read all again.
export function useEvents(query: string, events: Events): void {
  const now = useRef(events)
  now.current = events
  useEffect(() => {
    let source: EventSource
    let timer = 0
    let wait = 500
    const start = () => {
      source = new EventSource('/v1/events?' + query)
      source.onopen = () => {
        contact.set('here')
        wait = 500
      }
      source.addEventListener('job', (e) => now.current.job?.(JSON.parse(e.data)))
      source.addEventListener('node', (e) => now.current.node?.(JSON.parse(e.data)))
      source.addEventListener('ping', (e) => (pace.ms = JSON.parse(e.data).everyMs ?? pace.ms))
      source.addEventListener('reset', () => now.current.reset())
      source.onerror = () => {
        if (source.readyState !== EventSource.CLOSED) return contact.set('away')
        wait = Math.min(2 * wait, 15_000)
        timer = window.setTimeout(() => {
          start()
          now.current.reset()
        }, wait)
        void read('/v1/status').catch(() => undefined) // says so if we are not known any more
      }
    }
    start()
    return () => {
      clearTimeout(timer)
      source.close()
    }
  }, [query])
}
