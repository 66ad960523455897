// A service that logs people in with the npm package openid-client. Each line on
// standard input is a step, {"do": NAME, …}; each answer is a line of JSON.
import { createInterface } from "node:readline";
import * as client from "openid-client";

const [issuer, id, redirect] = process.argv.slice(2);
let config, checks, tokens, before;

const steps = {
  async begin() {
    config = await client.discovery(new URL(issuer), id, { id_token_signed_response_alg: "EdDSA" }, client.None(), { execute: [client.allowInsecureRequests] });
    // Signatures of ID tokens are verified although they come from the issuer itself.
    client.enableNonRepudiationChecks(config);
    const verifier = client.randomPKCECodeVerifier();
    checks = { pkceCodeVerifier: verifier, expectedState: client.randomState(), expectedNonce: client.randomNonce(), idTokenExpected: true };
    const address = client.buildAuthorizationUrl(config, {
      redirect_uri: redirect, scope: "openid email profile offline_access", state: checks.expectedState, nonce: checks.expectedNonce,
      code_challenge: await client.calculatePKCECodeChallenge(verifier), code_challenge_method: "S256",
    });
    return { address: address.href, pkce: config.serverMetadata().supportsPKCE() };
  },
  async finish({ callback }) {
    tokens = await client.authorizationCodeGrant(config, new URL(callback), checks);
    return { claims: tokens.claims(), expires: tokens.expiresIn(), refresh: Boolean(tokens.refresh_token) };
  },
  async user() {
    return await client.fetchUserInfo(config, tokens.access_token, tokens.claims().sub);
  },
  async refresh() {
    const next = await client.refreshTokenGrant(config, tokens.refresh_token);
    before = tokens;
    tokens = next;
    return { claims: tokens.claims(), changed: before.refresh_token !== tokens.refresh_token };
  },
  // A client looks at the published keys at most once a minute. This one starts
  // again with those that it had more than a minute ago.
  async age() {
    const { jwks, uat } = client.getJwksCache(config);
    config = new client.Configuration(config.serverMetadata(), id, { id_token_signed_response_alg: "EdDSA" }, client.None());
    client.allowInsecureRequests(config);
    client.enableNonRepudiationChecks(config);
    client.setJwksCache(config, { jwks, uat: uat - 61 });
    return { keys: jwks.keys.length };
  },
  async keys() {
    return { keys: client.getJwksCache(config).jwks.keys.length };
  },
  async replay() {
    tokens = before;
    return await steps.refresh();
  },
  async revoke() {
    await client.tokenRevocation(config, tokens.refresh_token, { token_type_hint: "refresh_token" });
    return {};
  },
};

for await (const line of createInterface({ input: process.stdin })) {
  const step = JSON.parse(line);
  let answer;
  try {
    answer = await steps[step.do](step);
  } catch (e) {
    answer = { error: e.error ?? e.code ?? e.message, status: e.status ?? e.cause?.status, message: e.message, cause: String(e.cause?.message ?? "") };
  }
  console.log(JSON.stringify(answer));
}
