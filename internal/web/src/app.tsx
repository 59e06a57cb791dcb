import { useEffect } from 'preact/hooks'
import { Cluster } from './cluster'
import { contact } from './http'
import { Job } from './job'
import { Jobs } from './jobs'
import { Login } from './login'
import { Operate } from './operate'
import { Link, usePlace } from './route'
import { begin, close, operator, who } from './session'
import { Shares } from './shares'
import { Submit } from './submit'
import { useValue } from './value'

const pages = [
  { path: 'jobs', label: 'Jobs' },
  { path: 'submit', label: 'Submit' },
  { path: 'cluster', label: 'Cluster' },
  { path: 'shares', label: 'Shares' },
  { path: 'operate', label: 'Operate', operators: true },
]

// App is the frame of all pages.
export function App() {
  const me = useValue(who)
  const place = usePlace()
  const away = useValue(contact) === 'away'
  const known = me !== undefined
  const first = place.path[0] ?? 'jobs'
  const title = place.path.join(' ') || 'jobs'
  useEffect(() => void begin(), [])
  useEffect(() => void (document.title = title + ' · gbatch'), [title])
  return (
    <>
      <a class="skip" href="#main">
        To the content
      </a>
      <header>
        <nav aria-label="Pages">
          <b>gbatch</b>
          {pages.filter((p) => !p.operators || operator()).map((p) => (
            <Link key={p.path} to={'/' + p.path} current={p.path === first}>
              {p.label}
            </Link>
          ))}
        </nav>
        {me && (
          <p>
            {me.you}
            {me.role !== 'user' && ', ' + me.role}{' '}
            <button type="button" onClick={() => void close()}>
              Log out
            </button>
          </p>
        )}
      </header>
      {away && (
        <p class="banner" role="alert">
          The controller does not answer. What you see is as it was; it goes on by itself when the controller is back.
        </p>
      )}
      <main id="main" tabIndex={0}>
        {(me || (known && shown.page)) && <Page path={place.path} />}
      </main>
      {me === null && <Login over={shown.page} />}
    </>
  )
}

// shown says whether a page was drawn once: it stays below the form when a session
// ends, with what was typed.
const shown = { page: false }

function Page(props: { path: string[] }) {
  shown.page = true
  const [first, second] = props.path
  switch (first ?? 'jobs') {
    case 'jobs':
      return second ? <Job id={second} /> : <Jobs />
    case 'submit':
      return <Submit />
    case 'cluster':
      return <Cluster />
    case 'shares':
      return <Shares />
    case 'operate':
      return <Operate />
  }
  return <p class="empty">There is no such page.</p>
}
