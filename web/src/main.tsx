import './workers';
import { StrictMode } from 'react';
import { createRoot } from 'react-dom/client';
import { wantsCredential } from './credential';
import { Playground } from './Playground';
import 'graphiql/style.css';
import './page.css';

const known = await wantsCredential();

createRoot(document.getElementById('root')!).render(
  <StrictMode>
    <Playground known={known} />
  </StrictMode>,
);
