// SPDX-License-Identifier: BSD-2-Clause
/* Connection qualifiers between processes: one owner at a time, and free as soon as the owner
 * has ended. */
#include "conn_remote.h"

/* PSP-CREATE-16 PSP-FREE-06 COMPAT-05 */
static void psp_create__held_by_another_process__until_it_frees(void **state)
{
	struct remote_fixture *r = *state;
	struct conn_fixture *f = r->f;
	const DAT_CONN_QUAL qual = (DAT_CONN_QUAL)(getpid() + 1) << 35;
	DAT_PSP_HANDLE psp;

	for (unsigned int i = 0; i < 20; i++) {
		remote_do(&r->peer, REMOTE_LISTEN, qual, 0);
		dt_fails(dat_psp_create(f->ia.ia, qual, f->listener.evd, DAT_PSP_CONSUMER_FLAG,
					&psp),
			 DAT_CONN_QUAL_IN_USE);
		/* the refusal did not hurt the owner */
		dt_connect(&f->ia, f->a.ep, qual);
		remote_do(&r->peer, REMOTE_REQUEST, 0, 0);
		remote_do(&r->peer, REMOTE_REJECT, 0, 0);
		conn_expect_failure(&f->a, DAT_CONNECTION_EVENT_PEER_REJECTED);
		dt_ok(dat_ep_reset(f->a.ep));
		remote_do(&r->peer, REMOTE_UNLISTEN, 0, 0);
		dt_ok(dat_psp_create(f->ia.ia, qual, f->listener.evd, DAT_PSP_CONSUMER_FLAG, &psp));
		dt_fails(remote_ask(&r->peer, REMOTE_TRY_LISTEN, qual, 0).ret,
			 DAT_CONN_QUAL_IN_USE);
		dt_ok(dat_psp_free(psp));
	}
}

/* PSP-CREATE-28: However the owner ends, and with requests that it never took. */
static void psp_create__owner_gone__free_at_once(void **state)
{
	static const enum remote_op ways[] = {REMOTE_END, REMOTE_EXIT, REMOTE_EXIT_NOW, REMOTE_EXEC,
					      REMOTE_QUIET /* killed */};
	struct remote_fixture *r = *state;
	struct conn_fixture *f = r->f;

	for (size_t i = 0; i < COUNT_OF(ways); i++) {
		const DAT_CONN_QUAL given = (DAT_CONN_QUAL)(getpid() + 1) << 36 | i;
		const bool is_any = i & 1;
		const DAT_CONN_QUAL qual =
			remote_do(&r->peer, REMOTE_LISTEN, is_any ? 0 : given, 0);
		DAT_PSP_HANDLE psp;

		dt_connect(&f->ia, f->a.ep, qual);
		if (ways[i] == REMOTE_QUIET)
			dt_peer_kill(&r->peer);
		else
			remote_go(&r->peer, ways[i]);
		dt_ok(dat_psp_create(f->ia.ia, qual, f->listener.evd, DAT_PSP_CONSUMER_FLAG, &psp));
		conn_expect_failure(&f->a, DAT_CONNECTION_EVENT_NON_PEER_REJECTED);
		dt_ok(dat_ep_reset(f->a.ep));
		dt_connect(&f->ia, f->a.ep, qual);
		dt_ok(dat_cr_reject(dt_request(&f->listener)));
		conn_expect_failure(&f->a, DAT_CONNECTION_EVENT_PEER_REJECTED);
		dt_ok(dat_ep_reset(f->a.ep));
		dt_ok(dat_psp_free(psp));
		if (r->peer.pid > 0)
			dt_peer_kill(&r->peer);
		remote_start(&r->peer);
	}
}

/* PSP-CREATE-28 GEN-34: A child of the dead owner does not keep the qualifier. */
static void psp_create__child_of_the_dead_owner_lives__free_at_once(void **state)
{
	struct remote_fixture *r = *state;
	struct conn_fixture *f = r->f;
	const DAT_CONN_QUAL qual = remote_do(&r->peer, REMOTE_LISTEN, 0, 0);
	const pid_t grandchild = (pid_t)remote_do(&r->peer, REMOTE_FORK, 0, 0);
	DAT_RETURN ret;
	DAT_PSP_HANDLE psp;

	dt_peer_kill(&r->peer);
	ret = dat_psp_create(f->ia.ia, qual, f->listener.evd, DAT_PSP_CONSUMER_FLAG, &psp);
	kill(grandchild, SIGKILL);
	dt_ok(ret);
}

/* --- many processes at once --- */

#define PROCESSES 4
#define EACH 60

static void hold_some(struct dt_peer *peer, void *arg)
{
	struct dt_ia ia;
	DAT_EVD_HANDLE evd;
	DAT_CONN_QUAL quals[EACH];

	(void)arg;
	dt_ia_open(&ia);
	evd = dt_evd_create(&ia, 4, DAT_EVD_CR_FLAG);
	dt_peer_sync(peer);
	for (size_t i = 0; i < EACH; i++) {
		DAT_PSP_HANDLE psp;

		dt_ok(dat_psp_create_any(ia.ia, &quals[i], evd, DAT_PSP_CONSUMER_FLAG, &psp));
	}
	dt_peer_send(peer, quals, sizeof(quals));
	dt_peer_sync(peer);
	dt_ia_abort(&ia);
}

/* PSP-CRANY-02 PSP-CRANY-03 PSP-CRANY-04 COMPAT-06 */
static void psp_create_any__several_processes_at_once__all_different(void **state)
{
	static bool seen[65536];
	struct dt_peer peers[PROCESSES];

	(void)state;
	for (size_t i = 0; i < PROCESSES; i++)
		dt_peer_start(&peers[i], hold_some, NULL);
	for (size_t i = 0; i < PROCESSES; i++)
		dt_peer_sync(&peers[i]);
	for (size_t i = 0; i < PROCESSES; i++) {
		DAT_CONN_QUAL quals[EACH];

		dt_peer_recv(&peers[i], quals, sizeof(quals));
		for (size_t j = 0; j < EACH; j++) {
			assert_true(quals[j] > 1023 && quals[j] < 65536);
			assert_false(seen[quals[j]]);
			seen[quals[j]] = true;
		}
	}
	for (size_t i = 0; i < PROCESSES; i++)
		dt_peer_sync(&peers[i]);
	for (size_t i = 0; i < PROCESSES; i++)
		dt_peer_join(&peers[i]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		remote_test(psp_create__held_by_another_process__until_it_frees),
		remote_test(psp_create__owner_gone__free_at_once),
		remote_test(psp_create__child_of_the_dead_owner_lives__free_at_once),
		cmocka_unit_test(psp_create_any__several_processes_at_once__all_different),
	};

	return cmocka_run_group_tests_name("qualifier", tests, NULL, NULL);
}
