// SPDX-License-Identifier: BSD-2-Clause
/*
 * A peer whose main thread has ended, while its other threads work on: the kernel finds the memory
 * of that process by its process number no more.
 */
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "dto_util.h"
#include "main_ended.h"

#define LARGE (1024u * 1024u)

static const size_t lengths[] = {8192, LARGE};

#define MESSAGES (sizeof(lengths) / sizeof(lengths[0]))

/* --- the peer --- */

struct worker {
	struct dt_peer *peer;
	struct dt_ia ia;
	struct dt_ep ep;
	struct dt_buf buf;
};

static bool main_thread_has_ended(void *unused)
{
	(void)unused;
	return !main_has_mappings();
}

static void *work(void *arg)
{
	struct worker *worker = arg;

	prctl(PR_SET_PDEATHSIG, SIGKILL); /* that of the main thread ends with it */
	dt_until(main_thread_has_ended, NULL);
	dt_peer_sync(worker->peer);
	for (uint32_t i = 0; i < MESSAGES; i++) {
		DAT_LMR_TRIPLET from = dt_seg(&worker->buf, 0, lengths[i]);

		dt_fill(worker->buf.p, lengths[i], i);
		dt_ok(dat_ep_post_send(worker->ep.ep, 1, &from, dt_cookie(i), 0));
		expect_sent(&worker->ep, i, lengths[i]);
	}
	dt_peer_sync(worker->peer);
	/* the other side has read the last one once more, and overwritten it */
	dt_peer_sync(worker->peer);
	/* the call orders the stores of the library's thread before our loads */
	assert_int_equal(dt_ep_state(worker->ep.ep), DAT_EP_STATE_CONNECTED);
	dt_check_pattern(worker->buf.p, LARGE, MESSAGES);
	_exit(0);
}

static void run_peer(struct dt_peer *peer, void *arg)
{
	static struct worker worker;
	DAT_RMR_TRIPLET all;
	DAT_CONN_QUAL qual;
	pthread_t thread;

	(void)arg;
	worker.peer = peer;
	dt_ia_open(&worker.ia);
	dt_ep_create(&worker.ia, worker.ia.pz, NULL, &worker.ep);
	dt_buf_create(&worker.ia, worker.ia.pz, &worker.buf, LARGE, DAT_MEM_PRIV_ALL_FLAG);
	all = dt_rseg(&worker.buf, 0, LARGE);
	dt_peer_recv(peer, &qual, sizeof(qual));
	dt_connect(&worker.ia, worker.ep.ep, qual);
	dt_expect_conn(worker.ep.conn, worker.ep.ep, DAT_CONNECTION_EVENT_ESTABLISHED);
	dt_peer_send(peer, &all, sizeof(all));
	assert_int_equal(pthread_create(&thread, NULL, work, &worker), 0);
	pthread_exit(NULL);
}

/* --- this side --- */

struct scene {
	struct dt_peer peer;
	struct dt_ia ia;
	struct dt_listener listener;
	struct dt_ep ep;
	struct dt_buf in[MESSAGES], out;
	DAT_RMR_TRIPLET far;
};

static void scene_open(struct scene *scene)
{
	memset(scene, 0, sizeof(*scene));
	dt_peer_start(&scene->peer, run_peer, NULL);
	dt_ia_open(&scene->ia);
	dt_ep_create(&scene->ia, scene->ia.pz, NULL, &scene->ep);
	for (uint32_t i = 0; i < MESSAGES; i++)
		dt_buf_create(&scene->ia, scene->ia.pz, &scene->in[i], lengths[i],
			      DAT_MEM_PRIV_ALL_FLAG);
	dt_buf_create(&scene->ia, scene->ia.pz, &scene->out, LARGE, DAT_MEM_PRIV_ALL_FLAG);
	dt_listen(&scene->ia, &scene->listener);
	for (uint32_t i = 0; i < MESSAGES; i++) {
		DAT_LMR_TRIPLET to = dt_seg(&scene->in[i], 0, lengths[i]);

		dt_ok(dat_ep_post_recv(scene->ep.ep, 1, &to, dt_cookie(i), 0));
	}
	dt_peer_send(&scene->peer, &scene->listener.qual, sizeof(scene->listener.qual));
	dt_ok(dat_cr_accept(dt_request(&scene->listener), scene->ep.ep, 0, NULL));
	dt_expect_conn(scene->ep.conn, scene->ep.ep, DAT_CONNECTION_EVENT_ESTABLISHED);
	dt_peer_recv(&scene->peer, &scene->far, sizeof(scene->far));
}

static void scene_close(struct scene *scene)
{
	dt_peer_join(&scene->peer);
	dt_expect_conn(scene->ep.conn, scene->ep.ep, DAT_CONNECTION_EVENT_BROKEN);
	dt_no_event(scene->ep.recv);
	dt_no_event(scene->ep.request);
	dt_ia_abort(&scene->ia);
	for (uint32_t i = 0; i < MESSAGES; i++)
		dt_mem_free(scene->in[i].p, scene->in[i].mapped);
	dt_mem_free(scene->out.p, scene->out.mapped);
}

static void check_rdma(struct scene *scene)
{
	DAT_LMR_TRIPLET here = dt_seg(&scene->out, 0, LARGE);

	dt_ok(dat_ep_post_rdma_read(scene->ep.ep, 1, &here, dt_cookie(1), &scene->far, 0));
	dt_expect_dto(scene->ep.request, scene->ep.ep, 1, DAT_DTO_SUCCESS, LARGE);
	dt_check_pattern(scene->out.p, LARGE, MESSAGES - 1);
	dt_fill(scene->out.p, LARGE, MESSAGES);
	dt_ok(dat_ep_post_rdma_write(scene->ep.ep, 1, &here, dt_cookie(2), &scene->far, 0));
	dt_expect_dto(scene->ep.request, scene->ep.ep, 2, DAT_DTO_SUCCESS, LARGE);
}

/* EP-SEND-01 EP-RDMAR-01 EP-RDMAW-01 DTO-104 COMPAT-28 */
static void transfer__main_thread_of_the_peer_has_ended__bytes_arrive(void **state)
{
	struct scene scene;

	(void)state;
	scene_open(&scene);
	dt_peer_sync(&scene.peer);
	for (uint32_t i = 0; i < MESSAGES; i++) {
		expect_received(&scene.ep, i, lengths[i]);
		dt_check_pattern(scene.in[i].p, lengths[i], i);
	}
	dt_peer_sync(&scene.peer);
	check_rdma(&scene);
	dt_peer_sync(&scene.peer);
	scene_close(&scene);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(transfer__main_thread_of_the_peer_has_ended__bytes_arrive),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
