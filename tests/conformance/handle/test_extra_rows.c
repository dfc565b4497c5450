// SPDX-License-Identifier: BSD-2-Clause
/*
 * Single requirements without a group of their own: prototypes, the presence of every call, the
 * life of request handles, contexts of shared receive queues, and paged-out memory.
 */
#include "conn_util.h"
#include "world.h"

#include <dat/dat_registry.h>

#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>

/* --- prototypes --- */

#define IS_OF_TYPE(what, type) __builtin_types_compatible_p(__typeof__(what), type)

/* PSP-CRANY-06 */
static void psp_create_any__garbage_in_the_qualifier__is_an_output(void **state)
{
	struct conn_fixture *f = *state;
	DAT_CONN_QUAL qual = f->listener.qual; /* it would be refused as an input: in use */
	DAT_PSP_HANDLE psp;

	assert_true(IS_OF_TYPE(&dat_psp_create_any,
			       DAT_RETURN(*)(DAT_IA_HANDLE, DAT_CONN_QUAL *, DAT_EVD_HANDLE,
					     DAT_PSP_FLAGS, DAT_PSP_HANDLE *)));
	dt_ok(dat_psp_create_any(f->ia.ia, &qual, f->listener.evd, DAT_PSP_CONSUMER_FLAG, &psp));
	assert_true(qual != f->listener.qual);
	dt_connect(&f->ia, f->a.ep, qual);
	dt_ok(dat_cr_reject(dt_request(&f->listener)));
	conn_expect_failure(&f->a, DAT_CONNECTION_EVENT_PEER_REJECTED);
	dt_ok(dat_psp_free(psp));
}

/* PROV-FINI-09 PROV-INIT-11 */
static void provider_entries__of_the_header__return_nothing(void **state)
{
	(void)state;
	assert_true(IS_OF_TYPE((DAT_PROVIDER_FINI_FUNC)NULL, void (*)(const DAT_PROVIDER_INFO *)));
	assert_true(IS_OF_TYPE((DAT_PROVIDER_INIT_FUNC)NULL,
			       void (*)(const DAT_PROVIDER_INFO *, const char *)));
}

/* --- every call exists --- */

static void check_implemented(DAT_RETURN ret, const char *name)
{
	if (DAT_GET_TYPE(ret) != DAT_NOT_IMPLEMENTED)
		return;
	print_error("%s returned %s\n", name, dt_strerror(ret));
	fail();
}

#define implemented(call) check_implemented((call), #call)

/* Calls that the table of the world lacks. */
static void call_the_rest(struct world *w)
{
	const DAT_REGION_DESCRIPTION region = {.for_va = w->buf.p};
	DAT_SRQ_ATTR srq_attr = {8, 1, DAT_SRQ_LW_DEFAULT};
	DAT_PROVIDER_INFO info, *list[1] = {&info};
	DAT_SRQ_HANDLE srq = DAT_HANDLE_NULL;
	DAT_CONN_QUAL qual;
	DAT_SRQ_PARAM param;
	DAT_EP_ATTR attr;
	DAT_HANDLE made;
	DAT_COUNT count, span;

	dt_ep_attr(&w->ia, &attr);
	attr.max_recv_dtos = DAT_HW_DEFAULT;
	implemented(dat_registry_list_providers(1, &count, list));
	implemented(dat_srq_create(w->ia.ia, w->ia.pz, &srq_attr, &srq));
	implemented(dat_srq_query(srq, DAT_SRQ_FIELD_ALL, &param));
	implemented(dat_srq_resize(srq, 16));
	implemented(dat_srq_set_lw(srq, 1));
	implemented(dat_srq_post_recv(srq, 0, NULL, dt_cookie(1)));
	implemented(dat_ep_create_with_srq(w->ia.ia, w->ia.pz, w->active.recv, w->active.request,
					   w->active.conn, srq, &attr, &made));
	implemented(dat_srq_free(srq));
	implemented(dat_ep_recv_query(w->active.ep, &count, &span));
	implemented(
		dat_ep_set_watermark(w->active.ep, DAT_WATERMARK_INFINITE, DAT_WATERMARK_INFINITE));
	implemented(
		dat_ep_dup_connect(w->active.ep, w->active.ep, 1, 0, NULL, DAT_QOS_BEST_EFFORT));
	implemented(dat_ep_connect(w->active.ep, w->ia.attr.ia_address_ptr, w->listener.qual, 1, 0,
				   NULL, DAT_QOS_BEST_EFFORT, DAT_CONNECT_DEFAULT_FLAG));
	implemented(dat_psp_create(w->ia.ia, w->listener.qual, w->listener.evd,
				   DAT_PSP_CONSUMER_FLAG, &made));
	implemented(
		dat_psp_create_any(w->ia.ia, &qual, w->listener.evd, DAT_PSP_CONSUMER_FLAG, &made));
	implemented(dat_lmr_create(w->ia.ia, DAT_MEM_TYPE_VIRTUAL, region, 4096, w->ia.pz,
				   DAT_MEM_PRIV_ALL_FLAG, &made, NULL, NULL, NULL, NULL));
}

/* GEN-12: Calls each function on its object: first those that only read, then those that change,
 * and the close of the instance last. */
static void each_call__on_its_object__is_implemented(void **state)
{
	struct world *w = calloc(1, sizeof(*w));

	(void)state;
	assert_non_null(w);
	world_open(w);
	call_the_rest(w);
	for (size_t i = 0; i < WORLD_CALLS; i++)
		for (size_t j = 0; j < WORLD_COUNT; j++)
			if (world_calls[i].type == w->object[j].type)
				check_implemented(world_calls[i].fn(w->object[j].handle),
						  world_calls[i].name);
	dt_mem_free(w->buf.p, w->buf.mapped);
	free(w);
}

/* --- request handles --- */

/* CONN-EVT-17: Two requests have two handles; each lives until a call on it succeeds. */
static void cr_arrival__two_requests__handles_live_until_answered(void **state)
{
	struct conn_fixture *f = *state;
	DAT_CR_HANDLE first, second, third;
	DAT_CR_PARAM param;

	dt_connect(&f->ia, f->a.ep, f->listener.qual);
	first = dt_request(&f->listener);
	dt_connect(&f->ia, f->b.ep, f->listener.qual);
	second = dt_request(&f->listener);
	assert_ptr_not_equal(first, second);
	assert_int_equal(conn_cr_query(first).remote_port_qual,
			 conn_ep_query(f->a.ep).local_port_qual);
	assert_int_equal(conn_cr_query(second).remote_port_qual,
			 conn_ep_query(f->b.ep).local_port_qual);
	/* a failed call does not end it */
	dt_fails_with(dat_cr_accept(first, f->b.ep, 0, NULL), DAT_INVALID_STATE,
		      DAT_INVALID_STATE_EP_ACTCONNPENDING);
	dt_fails_with(dat_cr_handoff(first, dt_unused_qual()), DAT_INVALID_PARAMETER,
		      DAT_INVALID_ARG2);
	(void)conn_cr_query(first);
	/* nor does the answer to the other one */
	dt_ok(dat_cr_reject(second));
	dt_fails_with(dat_cr_query(second, DAT_CR_FIELD_ALL, &param), DAT_INVALID_HANDLE,
		      DAT_INVALID_HANDLE_CR);
	(void)conn_cr_query(first);
	dt_ok(dat_cr_handoff(first, f->listener.qual));
	dt_fails_with(dat_cr_query(first, DAT_CR_FIELD_ALL, &param), DAT_INVALID_HANDLE,
		      DAT_INVALID_HANDLE_CR);
	third = dt_request(&f->listener);
	assert_ptr_not_equal(third, first);
	conn_expect_failure(&f->b, DAT_CONNECTION_EVENT_PEER_REJECTED);
	dt_ok(dat_ep_reset(f->b.ep));
	dt_ok(dat_cr_accept(third, f->b.ep, 0, NULL));
	dt_fails_with(dat_cr_query(third, DAT_CR_FIELD_ALL, &param), DAT_INVALID_HANDLE,
		      DAT_INVALID_HANDLE_CR);
	dt_expect_conn(f->a.conn, f->a.ep, DAT_CONNECTION_EVENT_ESTABLISHED);
}

/* --- contexts --- */

/* CTX-GET-03 CTX-SET-06 */
static void consumer_context__of_a_shared_receive_queue__kept(void **state)
{
	struct conn_fixture *f = *state;
	DAT_SRQ_ATTR attr = {8, 1, DAT_SRQ_LW_DEFAULT};
	DAT_CONTEXT context = {.as_64 = 0x1122334455667788};
	DAT_SRQ_HANDLE srq;

	dt_ok(dat_srq_create(f->ia.ia, f->ia.pz, &attr, &srq));
	dt_ok(dat_set_consumer_context(srq, context));
	context.as_64 = 0;
	dt_ok(dat_get_consumer_context(srq, &context));
	assert_int_equal(context.as_64, 0x1122334455667788);
	dt_ok(dat_srq_free(srq));
	dt_fails_with(dat_get_consumer_context(srq, &context), DAT_INVALID_HANDLE,
		      DAT_INVALID_HANDLE1);
	dt_fails_with(dat_set_consumer_context(srq, context), DAT_INVALID_HANDLE,
		      DAT_INVALID_HANDLE1);
}

/* --- memory --- */

#define FILE_LEN (1u << 20)

/* Memory of a file, which the system can page out at any time. */
static unsigned char *file_memory(void)
{
	char name[] = "/tmp/opendat-test-XXXXXX";
	const int fd = mkstemp(name);
	unsigned char *p;

	assert_true(fd >= 0);
	assert_int_equal(unlink(name), 0);
	assert_int_equal(ftruncate(fd, FILE_LEN), 0);
	p = mmap(NULL, FILE_LEN, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	assert_ptr_not_equal(p, MAP_FAILED);
	close(fd);
	return p;
}

static void page_out(unsigned char *p)
{
	assert_int_equal(msync(p, FILE_LEN, MS_SYNC), 0);
#ifdef MADV_PAGEOUT
	(void)madvise(p, FILE_LEN, MADV_PAGEOUT); /* advice that the kernel may ignore */
#endif
}

/* LMR-CREATE-28 */
static void lmr_create__memory_paged_out_later__data_correct(void **state)
{
	unsigned char *from = file_memory(), *to = file_memory();
	struct dt_buf source, target;
	struct dt_pair pair;

	(void)state;
	dt_pair_open(&pair);
	dt_lmr_create(&pair.ia, pair.ia.pz, from, FILE_LEN, DAT_MEM_PRIV_ALL_FLAG, &source);
	dt_lmr_create(&pair.ia, pair.ia.pz, to, FILE_LEN, DAT_MEM_PRIV_ALL_FLAG, &target);
	for (uint32_t seed = 1; seed <= 3; seed++) {
		dt_fill(from, FILE_LEN, seed);
		page_out(from);
		page_out(to);
		if (seed == 1)
			conf_write(&pair, dt_seg(&source, 0, FILE_LEN),
				   dt_rseg(&target, 0, FILE_LEN));
		else if (seed == 2)
			conf_read(&pair, dt_seg(&target, 0, FILE_LEN),
				  dt_rseg(&source, 0, FILE_LEN));
		else
			conf_send(&pair, dt_seg(&source, 0, FILE_LEN),
				  dt_seg(&target, 0, FILE_LEN));
		page_out(to);
		dt_check_pattern(to, FILE_LEN, seed);
	}
	dt_ok(dat_lmr_free(source.lmr));
	dt_ok(dat_lmr_free(target.lmr));
	dt_pair_close(&pair);
	munmap(from, FILE_LEN);
	munmap(to, FILE_LEN);
}

/* --- the registry --- */

static bool is_privileged; /* AT_SECURE, which the C library reads at the start */

__attribute__((visibility("default"))) char *secure_getenv(const char *name);

/* Replaces the function of the C library, for libdat as well. */
char *secure_getenv(const char *name)
{
	return is_privileged ? NULL : getenv(name);
}

struct override {
	char file[32];
	bool is_privileged;
};

static void open_mine(struct dt_peer *peer, void *arg)
{
	const struct override *override = arg;
	DAT_EVD_HANDLE evd = DAT_HANDLE_NULL;
	DAT_IA_HANDLE ia;
	DAT_RETURN ret;

	(void)peer;
	is_privileged = override->is_privileged;
	assert_int_equal(setenv("DAT_OVERRIDE", override->file, 1), 0);
	ret = dat_ia_open((DAT_NAME_PTR) "mine", 8, &evd, &ia);
	if (is_privileged) {
		dt_fails_with(ret, DAT_PROVIDER_NOT_FOUND, DAT_NAME_NOT_REGISTERED);
		return;
	}
	dt_ok(ret);
	dt_ok(dat_ia_close(ia, DAT_CLOSE_GRACEFUL_FLAG));
}

/* CONF-05: Other users read the same file. */
static void dat_override__raised_privileges__ignored(void **state)
{
	static const char line[] =
		"mine u1.2 nonthreadsafe default libdat-soft.so.1 opendat.1 \"lo\" \"\"\n";
	struct override override = {.file = "/tmp/opendat-test-XXXXXX"};
	const int fd = mkstemp(override.file);
	struct dt_peer peer;

	(void)state;
	assert_true(fd >= 0);
	assert_int_equal(write(fd, line, sizeof(line) - 1), sizeof(line) - 1);
	close(fd);
	dt_peer_start(&peer, open_mine, &override);
	dt_peer_join(&peer);
	override.is_privileged = true;
	dt_peer_start(&peer, open_mine, &override);
	dt_peer_join(&peer);
	unlink(override.file);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		/* first: its children need a registry that has read no file yet */
		cmocka_unit_test(dat_override__raised_privileges__ignored),
		cmocka_unit_test(provider_entries__of_the_header__return_nothing),
		cmocka_unit_test(each_call__on_its_object__is_implemented),
		cmocka_unit_test(lmr_create__memory_paged_out_later__data_correct),
		conn_test(psp_create_any__garbage_in_the_qualifier__is_an_output),
		conn_test(cr_arrival__two_requests__handles_live_until_answered),
		conn_test(consumer_context__of_a_shared_receive_queue__kept),
	};

	return cmocka_run_group_tests_name("extra_rows", tests, NULL, NULL);
}
