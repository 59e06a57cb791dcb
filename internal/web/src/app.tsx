import { useEffect } from 'preact/hooks'
import { Cluster } from './cluster'
import { contact, late } from './http'
import { Job } from './job'
import { Jobs } from './jobs'
import { Login } from './login'
import { Operate } from './operate'
import { Link, usePlace } from './route'
import { begin, close, operator, who, whose } from './session'
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
  const slow = useValue(late) > 0
  const user = useValue(whose)
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
      {slow && !away && (
        <p class="banner slow" role="status">
          An answer is late: the network is slow, or the controller. Nothing that you typed is lost.
        </p>
      )}
      <main id="main" tabIndex={0}>
        {user !== undefined && <Page key={user} path={place.path} />}
      </main>
      {me === null && <Login over={user !== undefined} />}
    </>
  )
}

function Page(props: { path: string[] }) {
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
