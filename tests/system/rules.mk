# System tests: each tests/system/NAME.sh starts a private rnbd in a folder of its own and asks it as a client would.

system_tests := $(filter-out lib run,$(basename $(notdir $(sort $(wildcard tests/system/*.sh)))))

$(B)/tests/make_tiny: $(call obj,tests/system/make_tiny.c $(backends_src) $(common_src)) $(B)/libsupport.a
	$(call link,$^)

# Answers what it is told to; see make_parrot.c.
$(B)/tests/make_parrot: $(call obj,tests/system/make_parrot.c $(backends_src) $(common_src)) $(B)/libsupport.a
	$(call link,$^)

$(B)/tests/tiny.gguf: $(B)/tests/make_tiny
	@rm -f $@; $< $@
$(B)/tests/slow.gguf: $(B)/tests/make_tiny
	@rm -f $@; $< $@ 40 8192
$(B)/tests/moe.gguf: $(B)/tests/make_tiny
	@rm -f $@; $< $@ 8 2048 1 0 qwen3moe
$(B)/tests/embed.gguf: $(B)/tests/make_tiny
	@rm -f $@; $< $@ 2 512 1 1

.PHONY: check-system
check-system: all $(addprefix $(B)/tests/,tiny.gguf slow.gguf embed.gguf moe.gguf make_parrot mkmodel) ## a private rnbd, asked as clients would [T=http-auth]
	@B=$(abspath $(B)) SDPID1=$(abspath $(or $(SDPID1),../shared/tools/sdpid1.sh)) tests/system/run.sh $(or $(T),$(system_tests))

check-sdk: $(B)/tests/embed.gguf

MINUTES = 30
.PHONY: soak
soak: all $(addprefix $(B)/tests/,tiny.gguf slow.gguf embed.gguf) ## mixed load for a while, memory watched [MINUTES=30] [MODELS='FILE ...']
	python3 tests/system/soak/soak.py $(B) --minutes $(MINUTES) $(addprefix $(B)/tests/,tiny.gguf slow.gguf embed.gguf) $(MODELS)
