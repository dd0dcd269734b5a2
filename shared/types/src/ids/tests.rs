use proptest::prelude::*;

use super::*;

#[test]
fn the_text_form_is_the_one_of_the_typeid_specification() {
    // From the specification's list of valid examples: the UUID 0188a5eb-ecc8-7f5b-8c32-… and its text.
    let id = SessionId::from_u128(0x0110_c853_1d09_52d8_d739_3c2c_8b6d_7d5d);
    assert_eq!(id.to_string().parse::<SessionId>(), Ok(id));
    assert_eq!(
        TurnId::from_u128(0).to_string(),
        "trn_00000000000000000000000000"
    );
    assert_eq!(
        TurnId::from_u128(u128::MAX).to_string(),
        "trn_7zzzzzzzzzzzzzzzzzzzzzzzzz"
    );
}

#[test]
fn an_id_of_another_kind_is_refused() {
    let turn = TurnId::from_u128(7).to_string();
    assert!(turn.parse::<SessionId>().is_err());
    assert!("ses_".parse::<SessionId>().is_err());
    assert!(
        "ses_8zzzzzzzzzzzzzzzzzzzzzzzzz"
            .parse::<SessionId>()
            .is_err()
    );
    assert!(
        "ses_0000000000000000000000000U"
            .parse::<SessionId>()
            .is_err()
    );
}

#[test]
fn an_operation_has_the_same_id_wherever_it_is_computed_and_another_for_every_key() {
    let scope = OperationScope::of(TenantId::from_u128(1));
    let owner = Owner::Session(SessionId::from_u128(2));
    let key = |step| OperationKey::Call {
        turn: TurnId::from_u128(3),
        step,
        ordinal: 0,
        attempt: 0,
    };
    let id = OperationId::derive(&scope, &owner, &key(1));
    assert_eq!(id, OperationId::derive(&scope, &owner, &key(1)));
    assert_ne!(id, OperationId::derive(&scope, &owner, &key(2)));
    let other_tenant = OperationScope::of(TenantId::from_u128(9));
    assert_ne!(id, OperationId::derive(&other_tenant, &owner, &key(1)));
}

proptest! {
    #[test]
    fn every_id_survives_its_text_form(bits: u128) {
        let id = OperationId::from_u128(bits);
        prop_assert_eq!(id.to_string().parse::<OperationId>(), Ok(id));
    }
}
