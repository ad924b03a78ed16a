// Reads JSON-LD documents, an array of texts, from standard input, and writes what
// jsonld.js makes of each: N-Quads, or an error.
const jsonld = require('jsonld');
const documents = JSON.parse(require('fs').readFileSync(0, 'utf8'));
const documentLoader = url => Promise.reject(new Error('nothing is fetched: ' + url));
(async () => {
  const answers = [];
  for (const text of documents) {
    try {
      const quads = await jsonld.toRDF(JSON.parse(text), {base: process.argv[2], documentLoader, format: 'application/n-quads'});
      answers.push({Quads: quads});
    } catch (e) {
      answers.push({Error: String(e.details && e.details.code || e.message)});
    }
  }
  process.stdout.write(JSON.stringify(answers));
})();
