# Every kernel against its scalar twin, bit for bit (backends/cpu/README.md).
# Linked with kernels and formats alone: no outside library, so the static
# cross build needs nothing but a cross compiler.
kernel_test_src := $(sort $(wildcard tests/kernels/*.c)) backends/cpu/kernels.c backends/cpu/cpuid.c \
                   $(wildcard backends/cpu/math.c) $(format_src) $(kernel_src)

$(B)/tests/check_kernels: $(call obj,$(filter-out tests/kernels/check_ops.c,$(kernel_test_src)))
	@mkdir -p $(@D)
	@$(if $(Q),echo "  LINK  $@",:)
	$(Q)$(CC) $(ALL_LDFLAGS) -o $@ $^ -lm

.PHONY: check-kernels check-cross
check-kernels: $(B)/tests/check_kernels ## every kernel against its twin [ARGS="--only q4_k --bench"]
	$(RUN) $(B)/tests/check_kernels $(ARGS)

CROSS_CC ?= $(filter ccache,$(CC)) aarch64-linux-gnu-gcc

# Static: nothing of the other machine is needed but its C library.
check-cross: ## kernels and ops of the Arm tiers, cross compiled and run by qemu
	@$(MAKE) --no-print-directory B=$(B)-arm CC='$(CROSS_CC)' OPT=-O2 LDFLAGS=-static $(B)-arm/tests/check_kernels $(B)-arm/tests/check_ops
	@tests/kernels/cross.sh $(B)-arm/tests

# Every op on every tier, thread count and batch split (tests/kernels/ops/bed.h).
ops_test_src := tests/kernels/check_ops.c $(sort $(wildcard tests/kernels/ops/*.c))
-include $(patsubst %.c,$(B)/%.d,$(wildcard tests/kernels/ops/*.c))

# Without what of common asks for outside libraries, as the static cross build has none.
$(B)/tests/check_ops: $(call obj,$(ops_test_src) $(backends_src) \
                      $(filter-out %/hash.c %/ini.c %/json.c %/map.c %/rpc.c,$(common_src)))
	@mkdir -p $(@D)
	@$(if $(Q),echo "  LINK  $@",:)
	$(Q)$(CC) $(ALL_LDFLAGS) -o $@ $^ -lm

.PHONY: check-ops
check-ops: $(B)/tests/check_ops ## every op against double precision and itself [ARGS="--only MATMUL"]
	$(RUN) $(B)/tests/check_ops $(ARGS)
