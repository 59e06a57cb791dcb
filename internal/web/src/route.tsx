import type { ComponentChildren } from 'preact'
import { Value, useValue } from './value'

// base is where the page lives at the controller.
export const base = '/web'

// Place is what the address bar says: what is shown, and how it is filtered.
export interface Place {
  path: string[] // below base, as ['jobs', '12']
  query: URLSearchParams
}

const place = new Value<Place>(here())

window.addEventListener('popstate', () => place.set(here()))

function here(): Place {
  const path = location.pathname.slice(base.length).split('/').filter(Boolean).map(decodeURIComponent)
  return { path, query: new URLSearchParams(location.search) }
}

export const usePlace = (): Place => useValue(place)

// go shows another page. One that replaces leaves no entry to go back to: letters
// that are typed into a filter are no pages.
export function go(to: string, replace = false): void {
  history[replace ? 'replaceState' : 'pushState'](null, '', base + to)
  place.set(here())
  if (!replace) document.querySelector('main')?.focus()
}

// setQuery changes filters of the page that is shown; an empty value takes one away.
export function setQuery(changes: Record<string, string>, replace = true): void {
  const { path, query } = here()
  for (const [k, v] of Object.entries(changes)) v ? query.set(k, v) : query.delete(k)
  const text = query.toString()
  go('/' + path.map(encodeURIComponent).join('/') + (text ? '?' + text : ''), replace)
}

export function Link(props: { to: string; class?: string; current?: boolean; children: ComponentChildren }) {
  return (
    <a
      href={base + props.to}
      class={props.class}
      aria-current={props.current ? 'page' : undefined}
      onClick={(e: MouseEvent) => {
        if (e.ctrlKey || e.metaKey || e.shiftKey || e.button) return // a tab of its own
        e.preventDefault()
        go(props.to)
      }}
    >
      {props.children}
    </a>
  )
}
