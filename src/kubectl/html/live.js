// Puts what has changed into the page. The server has escaped every text of the cluster.
'use strict';

const connection = document.getElementById('connection');
const [address, query] = document.body.dataset.events.split('?since=');
let version = query;
let source = null;

const say = (text) => {
  if (connection.textContent === text) return;
  connection.textContent = text;
  connection.hidden = text === '';
};

// The element that has the focus may be replaced: the same link gets it again.
const put = ({ id, html }) => {
  const element = document.getElementById(id);
  if (!element) return;
  const focused = element.contains(document.activeElement) ? document.activeElement : null;
  const key = focused && (focused.getAttribute('href') || focused.id);
  element.innerHTML = html;
  if (!key) return;
  const same = (one) => one.getAttribute('href') === key || one.id === key;
  const again = [...element.querySelectorAll('a, [tabindex]')].find(same);
  if (again) again.focus({ preventScroll: true });
};

const units = [['day', 86400], ['hour', 3600], ['minute', 60]];
const ages = () => {
  for (const time of document.querySelectorAll('time')) {
    const seconds = (Date.now() - Date.parse(time.dateTime)) / 1000;
    const [unit, length] = units.find((one) => seconds >= one[1]) || ['second', 1];
    const count = Math.max(0, Math.floor(seconds / length));
    const text = `${count} ${unit}${count === 1 ? '' : 's'} ago`;
    if (unit === 'second' && time.closest('#fresh')) delete time.dataset.age;
    else time.dataset.age = text;
  }
};

const follow = () => {
  if (source) return;
  source = new EventSource(`${address}?since=${version}`);
  source.onopen = () => say('');
  source.onmessage = (event) => {
    version = event.lastEventId;
    JSON.parse(event.data).forEach(put);
    ages();
  };
  source.onerror = () => {
    const over = source.readyState === EventSource.CLOSED;
    say('No connection to kubectl stayput ui: what is shown may be old. ' +
      (over ? 'Start it again, and open the address that it prints.' : 'Trying again.'));
  };
};

// A browser has six connections for all its tabs: one that nobody sees needs none.
const look = () => {
  if (document.hidden && source) {
    source.close();
    source = null;
  } else if (!document.hidden) follow();
};

document.addEventListener('visibilitychange', look);
look();
ages();
setInterval(ages, 10000);
